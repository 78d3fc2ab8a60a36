"""Our own images: built when missing or stale, from their own sources, and never pulled."""

from __future__ import annotations

import ast
import hashlib
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from runner.engines.fake import FakeEngine
from runner.model.container import Exit
from runner.model.errors import PlatformError
from runner.provision import base, images
from tests.worlds.machines import ROOT, THING, make_config, only_own_packages, without_engine

DOCKERFILE = "ARG B\nFROM ${B} AS evaluator\nFROM ${B} AS sidecars\n"
SOURCES = ("Dockerfile", "evaluator/requirements.lock", "evaluator/a.py", "schemas/b.json")


def own_image(root: Path, name: str = "evaluator", lock: str = "") -> images.OwnImage:
    """The image of that name in a project of its own."""
    image = replace(next(i for i in images.IMAGES if i.name == name), root=root)
    for path in (image.requirements, f"{name}/a.py", "schemas/b.json"):
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text(path)
    (root / image.requirements).write_text(lock)
    (root / "Dockerfile").write_text(DOCKERFILE)
    return image


def test_the_source_digest_changes_with_every_source(tmp_path: Path) -> None:
    image = own_image(tmp_path)
    seen = {images.source_digest(image)}
    (tmp_path / "evaluator" / "__pycache__").mkdir()
    (tmp_path / "evaluator" / "__pycache__" / "a.pyc").write_text("x")
    (tmp_path / "README.md").write_text("x")
    assert images.source_digest(image) in seen, "what is not in the image does not make it stale"
    (tmp_path / "Dockerfile").write_text(DOCKERFILE + "USER x\n")
    assert images.source_digest(image) in seen, "nor does another image's stage"
    for name in SOURCES:
        (tmp_path / name).write_text("FROM changed AS evaluator\n")
        digest = images.source_digest(image)
        assert digest not in seen
        seen.add(digest)
    (tmp_path / "evaluator" / "a.py").rename(tmp_path / "evaluator" / "c.py")
    assert images.source_digest(image) not in seen


@pytest.mark.parametrize("image", images.IMAGES, ids=lambda image: image.name)
@pytest.mark.parametrize("word", ["missing", "older"])
def test_a_missing_or_stale_image_is_refused_and_never_pulled(image: images.OwnImage, word: str) -> None:
    engine = FakeEngine({images.tag(image): Exit(code=0)} if word == "older" else {})
    with pytest.raises(PlatformError) as caught:
        images.images(engine, [image.name])
    assert caught.value.code == "E304" and "make setup" in caught.value.fix
    assert image.name in caught.value.what and word in f"{caught.value.what} {caught.value.why}"
    assert "pull" not in engine.calls
    engine.close()


def test_the_sidecars_are_made_when_they_are_first_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A set-up leaves them for later; a stale image is the next set-up's, because it changes what was promised."""
    from runner.execution.machine import Machine

    without_engine(monkeypatch, tmp_path)
    wheel = only_own_packages(monkeypatch, tmp_path / "index")
    lock = f"thing==1 --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n"
    evaluator, ours = images.IMAGES[0], own_image(tmp_path, "sidecars", lock)
    (tmp_path / "Dockerfile").write_text(f"# fake: {images.tag(evaluator)}\n{DOCKERFILE}")
    monkeypatch.setattr(images, "IMAGES", (evaluator, ours))
    engine, said = FakeEngine({images.tag(evaluator): Exit(code=0)}), list[str]()
    engine.registry.add(base.REGISTRY_IMAGE)
    assert [image.name for image in images.usual(engine)] == ["evaluator"]
    machine = Machine(make_config(tmp_path / "home"), said.append, engine=engine)
    assert machine.sidecars() is None and not engine.built
    found = machine.sidecars(needed=True)
    assert found and machine.images(["sidecars"]) == {"sidecars": found}
    assert [spec.target for spec, _ in engine.built] == ["sidecars"] and "first time" in said[0]
    assert [image.name for image in images.usual(engine)] == ["evaluator", "sidecars"]
    (tmp_path / "sidecars" / "a.py").write_text("changed")
    assert machine.sidecars(needed=True) is None and len(engine.built) == 1
    engine.close()


def test_an_image_needs_only_its_own_stages() -> None:
    text = """# All about it
ARG BASE=x

# The common part
FROM ${BASE} AS common
RUN one

FROM common AS tools
RUN two
# About a

# and more
FROM common AS a
COPY --from=tools /x /x
FROM common AS b
RUN three
"""
    tools, last = text.index("\nFROM common AS tools"), text.index("FROM common AS b")
    assert images.stages(text, "b") == text[:tools] + text[last:]
    assert images.stages(text, "a") == text[:last]
    ours = (ROOT / "Dockerfile").read_text()
    for image in images.IMAGES:
        kept = images.stages(ours, image.name)
        assert kept.count("\nFROM ") == 2 and kept.rstrip().count(f" AS {image.name}\n") == 1
        assert not any(f"COPY {other.name}" in kept for other in images.IMAGES if other is not image)


def test_the_evaluators_image_keeps_no_index_of_ids() -> None:
    """Its room has a folder of its own for temporary files, which is gone after a run: what is written there costs time and memory."""
    stage = images.stages((ROOT / "Dockerfile").read_text(), "evaluator")
    lines = [line for line in stage.replace("\\\n", " ").splitlines() if line.startswith("ENV ")]
    assert "EVALUATOR_CACHE=/dev/null" in " ".join(lines).split()


def test_what_is_stale_is_built_with_its_own_files_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each image gets its own files, and is built when they have changed."""
    without_engine(monkeypatch, tmp_path)
    wheel = only_own_packages(monkeypatch, tmp_path / "index")
    lock = f"thing==1 --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n"
    ours = [own_image(tmp_path, image.name, lock) for image in images.IMAGES]
    engine, config = FakeEngine({images.tag(i): Exit(code=0) for i in ours}), make_config(tmp_path / "home")
    engine.registry.add(base.REGISTRY_IMAGE)
    images.ensure_images(engine, config, wanted=ours)
    assert {spec.target: (files, spec.network) for spec, files in engine.built} == {
        "evaluator": ({*SOURCES, f"wheels/{THING}"}, False),
        # The registry's image has no socat: Debian's archive is asked for it.
        "sidecars": ({name.replace("evaluator", "sidecars") for name in SOURCES} | {f"wheels/{THING}"}, True),
    }
    assert all(spec.args == {"BASE_IMAGE": base.REGISTRY_IMAGE} for spec, _ in engine.built)
    images.ensure_images(engine, config, wanted=ours)
    assert len(engine.built) == 2, "nothing has changed"
    (tmp_path / "sidecars" / "a.py").write_text("changed")
    images.ensure_images(engine, config, wanted=ours)
    assert [spec.target for spec, _ in engine.built[2:]] == ["sidecars"]
    engine.close()


@pytest.mark.parametrize(
    ("name", "folders", "others"),
    [
        ("evaluator", ("evaluator",), {"yaml", "pytrec_eval", "dotenv"}),
        ("sidecars", ("sidecars",), {"yaml"}),
        ("runner/web", ("runner/web", "runner/exchange"), {"yaml", "runner"}),
    ],
)
def test_the_packages_of_our_images_are_those_of_the_project(
    name: str, folders: tuple[str, ...], others: set[str]
) -> None:
    """Same versions and hashes as in the project's lock file, and everything that the code in the image imports."""

    def pins(path: Path) -> dict[str, frozenset[str]]:
        found: dict[str, set[str]] = {}
        for line in path.read_text().splitlines():
            if line and line[0].isalnum():
                current = found.setdefault(line.split(" ")[0], set())
            elif "--hash=" in line:
                current.add(line.strip(" \\"))
        return {name: frozenset(hashes) for name, hashes in found.items()}

    whole, part = pins(ROOT / "requirements.lock"), pins(ROOT / name / "requirements.lock")
    assert part and all(part.values())
    assert part.items() <= whole.items()
    assert not {"docker"} & {pin.split("==")[0] for pin in part}

    locked = {pin.split("==")[0].replace("-", "_") for pin in part} | others
    ours = {*folders, "schemas"}
    for folder in ours:
        for path in (ROOT / folder).rglob("*.py"):
            for top in _imported(path):
                assert top in sys.stdlib_module_names | ours | locked, f"{path}: {top} is not in the image"


def _imported(path: Path) -> set[str]:
    """The packages that a module imports."""
    names = set[str]()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add(node.module or "")
    return {name.split(".")[0] for name in names}


@pytest.mark.engine
def test_our_images_are_built_once_and_hold_the_sources() -> None:
    """On the engine of the set-up: nothing is missing or stale, and asking again is quick."""
    from runner.model.config import load
    from runner.provision.engine import open_engine

    config = load(cwd=ROOT)
    opened = open_engine(config)
    found = images.ensure_images(opened, config)
    started = time.monotonic()
    again = images.ensure_images(opened, config)
    assert time.monotonic() - started < 10, "one that is built takes longer"
    assert {name: image.id for name, image in again.items()} == {name: i.id for name, i in found.items()}
    assert found["sidecars"].entrypoint == () and found["evaluator"].entrypoint == ("evaluator",)
    assert found["evaluator"].id.startswith("sha256:")
    assert found["evaluator"].cmd == ("run", "--request", "/in/request.json")
    assert all(image.user.split(":")[0] not in ("", "0", "root") for image in found.values())
