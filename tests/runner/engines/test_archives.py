"""Archives for engines: images of strangers, made by hand, and build contexts."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runner.engines.docker.build_context import pack
from runner.engines.docker.image_archives import Archive
from runner.model.errors import RunnerError

MAX = 1 << 20


def tar(entries: dict[str, bytes | tarfile.TarInfo]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as out:
        for name, content in entries.items():
            if isinstance(content, tarfile.TarInfo):
                content.name = name
                out.addfile(content)
                continue
            info = tarfile.TarInfo(name)
            info.size = len(content)
            out.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def link(kind: bytes, target: str) -> tarfile.TarInfo:
    info = tarfile.TarInfo()
    info.type, info.linkname = kind, target
    return info


LAYER = tar({"hello": b"world" * 100})


def image(layer: bytes = LAYER, layers: int = 1, tags: Any = ("proctor/evaluator:latest",)) -> dict[str, Any]:
    config = json.dumps(
        {"rootfs": {"diff_ids": ["sha256:" + hashlib.sha256(layer).hexdigest()] * layers}}
    ).encode()
    name = hashlib.sha256(config).hexdigest() + ".json"
    manifest = [{"Config": name, "RepoTags": list(tags), "Layers": ["a/layer.tar"] * layers}]
    return {
        name: config,
        "a/layer.tar": layer,
        "repositories": b'{"proctor/evaluator":{"latest":"a"}}',
        "manifest.json": json.dumps(manifest).encode(),
    }


@pytest.fixture
def write(tmp_path: Path) -> Callable[[bytes], Path]:
    def go(raw: bytes) -> Path:
        path = tmp_path / "image.tar"
        path.write_bytes(raw)
        return path

    return go


def rewritten(path: Path) -> dict[str, bytes]:
    with Archive(path, max_bytes=MAX) as found:
        raw = b"".join(found.stream())
    with tarfile.open(fileobj=io.BytesIO(raw)) as out:
        return {m.name: out.extractfile(m).read() for m in out}  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "pack", [bytes, gzip.compress, lambda raw: gzip.compress(raw[:700]) + gzip.compress(raw[700:])]
)
def test_only_one_image_without_tags_goes_through(
    write: Callable[[bytes], Path], pack: Callable[[bytes], bytes]
) -> None:
    entries = image()
    name = next(iter(entries))
    out = rewritten(write(pack(tar(entries))))
    assert set(out) == {name, "layer-0.tar", "manifest.json"}
    assert json.loads(out["manifest.json"]) == [{"Config": name, "RepoTags": None, "Layers": ["layer-0.tar"]}]
    assert out["layer-0.tar"] == LAYER and out[name] == entries[name]


def test_equal_layers_may_be_links(write: Callable[[bytes], Path]) -> None:
    entries = image(layers=2)
    entries["b/layer.tar"] = link(tarfile.SYMTYPE, "../a/layer.tar")
    manifest = json.loads(entries["manifest.json"])
    manifest[0]["Layers"] = ["a/layer.tar", "b/layer.tar"]
    entries["manifest.json"] = json.dumps(manifest).encode()
    out = rewritten(write(tar(entries)))
    assert json.loads(out["manifest.json"])[0]["Layers"] == ["layer-0.tar", "layer-0.tar"]


def changed(**manifest: Any) -> dict[str, Any]:
    entries = image()
    listed = json.loads(entries["manifest.json"])
    entries["manifest.json"] = json.dumps([listed[0] | manifest]).encode()
    return entries


def huge(kind: bytes = tarfile.REGTYPE) -> bytes:
    info = tarfile.TarInfo("huge")
    info.size, info.type = 1 << 40, kind
    return info.tobuf() + b"\0" * 1024


SPARSE = tarfile.TarInfo("sparse")
SPARSE.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": str(1 << 40)}


def extended(body: bytes, kind: bytes = tarfile.XHDTYPE, size: int | None = None) -> bytes:
    """An extended header with a body of our own."""
    info = tarfile.TarInfo("e")
    info.size, info.type = len(body) if size is None else size, kind
    return info.tobuf(tarfile.USTAR_FORMAT) + body + bytes(-len(body) % 512)


def negative() -> bytes:
    raw = bytearray(tarfile.TarInfo("n").tobuf(tarfile.USTAR_FORMAT))
    raw[124:136] = b"\xff" * 12
    raw[148:156] = b" " * 8
    raw[148:156] = b"%06o\0 " % sum(raw)
    return bytes(raw)


END = tarfile.TarInfo("file").tobuf() + bytes(1024)
TWO_MIB = bytes(1 << 21)

BAD: dict[str, bytes] = {
    "empty": b"",
    "noise": b"\x00\x01" * 5000,
    "no manifest": tar({"x": b"y"}),
    "two images": tar(image() | {"manifest.json": b"[{}, {}]"}),
    "manifest is no JSON": tar(image() | {"manifest.json": b"{"}),
    "manifest nests deeply": tar(image() | {"manifest.json": b"[" * 100_000}),
    "layer is missing": tar(changed(Layers=["nope"])),
    "layer outside": tar(changed(Layers=["../../etc/passwd"])),
    "layer absolute": tar(changed(Layers=["/etc/passwd"])),
    "layer is a number": tar(changed(Layers=[5])),
    "no layers": tar(changed(Layers=None)),
    "another number of layers": tar(changed(Layers=["a/layer.tar"] * 2)),
    "config is missing": tar(changed(Config="x.json")),
    "entry outside": tar(image() | {"../x": b""}),
    "entry absolute": tar(image() | {"/x": b""}),
    "link outside": tar(image() | {"a/layer.tar": link(tarfile.SYMTYPE, "../../etc/passwd")}),
    "link absolute": tar(image() | {"a/layer.tar": link(tarfile.SYMTYPE, "/etc/passwd")}),
    "links in a circle": tar(image() | {"a/layer.tar": link(tarfile.SYMTYPE, "layer.tar")}),
    "layer is a device": tar(image() | {"a/layer.tar": link(tarfile.CHRTYPE, "")}),
    "too large": tar(image() | {"x": bytes(MAX)}),
    "gzip bomb": gzip.compress(bytes(50 * MAX)),
    "gzip cut off": gzip.compress(tar(image()))[:-20],
    "layer is a gzip bomb": tar(image(gzip.compress(bytes(50 * MAX)))),
    "layer unpacks to too much": tar(image(gzip.compress(tar({"x": bytes(MAX)})))),
    "layer declares a terabyte": tar(image(huge())),
    "layer holds a sparse terabyte": tar(image(tar({"s": SPARSE}))),
    "layer is compressed otherwise": tar(image(b"\x28\xb5\x2f\xfd" + bytes(600))),
    "layer has an extended header of 2 MiB": tar(image(gzip.compress(extended(TWO_MIB) + END))),
    "layer has a name of 2 MiB": tar(image(gzip.compress(extended(TWO_MIB, b"L") + END))),
    "layer has an endless chain of headers": tar(image(gzip.compress(extended(b"") * 2000 + END))),
    "layer has a header that is none": tar(image(extended(b"1" * 60_000) + END)),
    "layer grows by an extended header": tar(image(extended(b"22 size=1099511627776\n") + END)),
    "layer has a negative size": tar(image(negative() + bytes(1024))),
    "layer is cut off": tar(image(LAYER[:700])),
    "one size for all": tar(image(extended(b"10 size=1\n", b"g") + END)),
    "archive has an extended header of 60 kB": extended(b"1" * 60_000) + tar(image()),
    "archive has an endless chain of headers": extended(b"") * 2000 + tar(image()),
    "archive has a negative size": negative() + tar(image()),
    "layer is noise": tar(image(b"\x01" * 5000)),
}


@pytest.mark.parametrize("name", BAD)
def test_refused(name: str, write: Callable[[bytes], Path]) -> None:
    with pytest.raises(RunnerError) as caught:
        rewritten(write(BAD[name]))
    assert caught.value.code == "E205"
    assert caught.value.why


def test_long_names_and_attributes_are_fine(write: Callable[[bytes], Path]) -> None:
    attributes = tarfile.TarInfo("n" * 3000)
    attributes.pax_headers = {"SCHILY.xattr.security.capability": "\x01\x02" * 30}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as out:
        out.addfile(tarfile.TarInfo("m" * 3000))
        deep = link(tarfile.SYMTYPE, "l" * 3000)
        deep.name = "k" * 300
        out.addfile(deep)
    for layer in (tar({"n" * 3000: attributes}), buffer.getvalue()):
        assert rewritten(write(tar(image(layer))))["layer-0.tar"] == layer


@pytest.mark.timeout(100)
def test_a_search_in_an_extended_header_is_not_quadratic(write: Callable[[bytes], Path]) -> None:
    value = b"1" * 200_000
    body = b"%d x=" % (len(value) + 10) + value + b"\n"
    layer = extended(body) * 3 + END
    assert rewritten(write(tar(image(layer))))["layer-0.tar"] == layer


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(RunnerError) as caught:
        Archive(tmp_path / "none", max_bytes=MAX)
    assert caught.value.code == "E205"


def packed(folder: Path, dockerfile: str = "Dockerfile") -> tuple[bytes, dict[str, tarfile.TarInfo]]:
    with pack(folder, dockerfile) as file:
        raw = file.read()
        file.seek(0)
        with tarfile.open(fileobj=file) as tar:
            return raw, {m.name: m for m in tar}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "context"
    (path / "src").mkdir(parents=True)
    path.joinpath("Dockerfile").write_text("FROM x\n")
    path.joinpath("src/run.sh").write_text("true\n")
    path.joinpath("src/run.sh").chmod(0o755)
    path.joinpath("secret.txt").write_text("no")
    return path


def test_links_stay_links_and_pipes_stay_out(folder: Path) -> None:
    folder.joinpath("link").symlink_to("/etc/passwd")
    folder.joinpath("src/up").symlink_to("../..")
    os.mkfifo(folder / "pipe")
    _, found = packed(folder)
    assert set(found) == {"Dockerfile", "src", "src/run.sh", "src/up", "secret.txt", "link"}
    assert found["link"].issym() and found["link"].linkname == "/etc/passwd"
    assert found["src/run.sh"].mode == 0o755


def test_the_same_files_give_the_same_bytes(folder: Path) -> None:
    before, _ = packed(folder)
    os.utime(folder / "Dockerfile", (1, 1))
    assert packed(folder)[0] == before


def test_dockerignore_as_an_allow_list(folder: Path) -> None:
    folder.joinpath(".dockerignore").write_text("# nothing\n*\n!src/run.sh\n")
    _, found = packed(folder)
    assert set(found) == {".dockerignore", "Dockerfile", "src", "src/run.sh"}


@pytest.mark.parametrize("name", ["../outside", "/etc/passwd", "src/../../outside", "evil"])
def test_a_dockerfile_outside(folder: Path, name: str) -> None:
    folder.parent.joinpath("outside").write_text("FROM secret")
    folder.joinpath("evil").symlink_to("../outside")
    with pytest.raises(RunnerError) as caught:
        packed(folder, name)
    assert caught.value.code == "E202"
    assert "secret" not in str(vars(caught.value))


def test_a_missing_dockerfile(folder: Path) -> None:
    with pytest.raises(RunnerError) as caught:
        packed(folder, "nope")
    assert caught.value.code == "E203"
