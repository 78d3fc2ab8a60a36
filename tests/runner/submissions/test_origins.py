"""Where images of strangers are fetched from: no address is called that only a team names."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.engines.fake import FakeEngine
from runner.model.container import ImageRef
from runner.model.errors import RunnerError
from runner.submissions.origins import Origins

DIGEST = "@sha256:" + "2" * 64
IDENTITY = "sha256:" + "1" * 64
ELSEWHERE = (
    "127.0.0.1:5000/x",
    "169.254.169.254/x",
    "localhost/x",
    "LocalHost/x",
    "registry.example/x",
    "docker.io:444/x",
    "INTRANET/x",
    "10.0.0.1:80/team/x",
)


class Asked(FakeEngine):
    """An engine that has every image, and notes for which it was asked."""

    def __init__(self) -> None:
        super().__init__({})
        self.names: list[str] = []

    def resolve(self, image: str) -> ImageRef:
        self.names.append(image)
        return ImageRef(IDENTITY, names=(image,))


@pytest.mark.parametrize("name", ELSEWHERE)
def test_no_address_is_called_that_only_a_team_names(name: str, tmp_path: Path) -> None:
    engine = Asked()
    mine = Origins("mine", engine)
    (tmp_path / "Dockerfile").write_text(f"FROM {name}{DIGEST}\n")
    for ask in (
        lambda: mine.image(f"{name}:latest"),
        lambda: mine.image(name + DIGEST),
        lambda: mine.registry(name + DIGEST, IDENTITY),
        lambda: mine.dockerfile(tmp_path / "Dockerfile", {}, "Dockerfile"),
    ):
        with pytest.raises(RunnerError) as caught:
            ask()
        assert caught.value.code == "E212" and engine.names == []
    named = "RUNNER_REGISTRIES" in caught.value.problems[0].fix
    assert named or name != name.lower(), "names with capitals are no digest's at all"


def test_the_engines_own_registry_and_listed_ones_are_asked() -> None:
    names = ("x", "team/x", "index.docker.io/team/x", "lab:5000/x", "Registry.example/x")
    mine = Origins("mine", Asked(), registries=("docker.io", "ghcr.io", "LAB:5000", "registry.example"))
    for name in names:
        assert mine.image(name + DIGEST).id == IDENTITY
    base = "127.0.0.1:1/base" + DIGEST
    assert Origins("mine", Asked(), bases=(base,)).image(base), "a base image is the organiser's word"
    assert Origins("baselines", Asked(), strict=False).image(base), "so is what is handed in by themselves"


@pytest.mark.parametrize("strict", [True, False])
def test_a_dockerfile_with_a_lone_carriage_return_is_refused(tmp_path: Path, *, strict: bool) -> None:
    origins = Origins("mine", Asked(), strict=strict, registries=("docker.io",))
    path = tmp_path / "Dockerfile"
    path.write_bytes(f"FROM x{DIGEST}\r\nRUN true\r\n".encode())
    origins.dockerfile(path, {}, "Dockerfile")
    path.write_bytes(f"FROM x{DIGEST}\nRUN true #\rCOPY --from=other a b\n".encode())
    with pytest.raises(RunnerError) as caught:
        origins.dockerfile(path, {}, "Dockerfile")
    assert caught.value.code == "E212"
    assert [problem.where for problem in caught.value.problems] == ["Dockerfile:2"]
