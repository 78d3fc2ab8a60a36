"""One team tries to take another team's software, in every way that the engine of the organiser would allow."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from runner.engines.base import BuildSpec
from runner.engines.docker.engine import DockerEngine
from runner.engines.fake import FakeEngine
from runner.model.config import BASES
from runner.model.container import ImageRef
from runner.model.errors import RunnerError
from runner.provision.images import IMAGES, tag
from runner.submissions.origins import Origins, kept_as
from tests.e2e.test_two_machines import _resign
from tests.leftovers import KEPT
from tests.worlds.mini import GOOD, Project, call, cli

pytestmark = pytest.mark.engine


@dataclass
class World:
    """The organiser's machine, on which a victim has registered a software that holds a secret file."""

    project: Project
    engine: DockerEngine
    image: str
    kept: str
    base: str

    def folder(self, name: str, dockerfile: str, **keys: object) -> Path:
        """A software of the thief that is built, in the folder of its team."""
        self.project.software(name, team="thief", image=None, build={"context": ".", **keys})
        folder = self.project.root / "submissions" / "thief" / name
        (folder / "Dockerfile").write_text(dockerfile)
        return folder


@pytest.fixture(scope="module")
def machine(
    engine: DockerEngine,
    base_image: ImageRef,
    evaluator_image: ImageRef,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[World]:
    root = tmp_path_factory.mktemp("taking")
    project = Project(root / "project", root / "home", root / "truths", docker_host=engine.clients.address)
    project.write_task()
    base = next(name for name in base_image.names if name in BASES)
    project.env["RUNNER_BASE"] = "registry" if base == BASES[0] else "local"
    project.software(
        "dense", team="victim", image=None, build={"context": "."}, command=["python3", "/main.py"]
    )
    folder = project.root / "submissions" / "victim" / "dense"
    (folder / "main.py").write_text(GOOD)
    (folder / "secret").write_text(secrets.token_hex(16))
    (folder / "Dockerfile").write_text("ARG BASE_IMAGE\nFROM ${BASE_IMAGE}\nCOPY main.py secret /\n")
    [receipt] = cli(project, "submit", "-t", "victim", "--no-check", "--json").json
    kept = kept_as("mini", "victim", receipt["submission"])
    yield World(project, engine, receipt["image"], kept, base)
    from docker.errors import APIError

    with engine.clients.calling("removing the images of the test") as api:
        for row in cli(project, "runs", "--json").json:
            with suppress(APIError):
                api.remove_image(kept_as("mini", row["team"], row["submission"]), force=True)


def _stolen(world: World, context: Path) -> bool:
    """Whether the engine itself would build it: all these files end with a step that needs the secret."""
    try:
        built = world.engine.build(
            BuildSpec(context, args={"BASE_IMAGE": world.base}, timeout=300, labels=KEPT)
        )
    except RunnerError as error:
        assert error.code == "E203", error
        return False
    with world.engine.clients.calling("removing what was stolen") as api:
        api.remove_image(built.id, force=True)
    return True


NEED = "RUN test -s /secret\n"
DOCKERFILES = {
    "from": ("FROM {kept}\n" + NEED, 1),
    "prefix": ("FROM {prefix}\n" + NEED, 1),
    "identity": ("FROM {id}\n" + NEED, 1),
    "argument": ("ARG X={kept}\nARG Y=${{X:-python:3.11-slim}}\nFROM \\\n # x\n ${{Y}}\n" + NEED, 3),
    "copy": ("# syntax=nobody/nothing:1\nFROM {base}\nCOPY --from={kept} /secret /secret\n" + NEED, 3),
    "copy-prefix": (
        "FROM {base} AS {stage}\nFROM {base}\ncopy --chown=0:0 --from={prefix} /secret /secret\n" + NEED,
        3,
    ),
    "escape": ("# escape=`\nFROM {base}\nRUN true \\\nCOPY --from={kept} /secret `\n /secret\n" + NEED, 4),
    "onbuild": ("FROM {base} AS one\nONBUILD COPY --from={kept} /secret /secret\nFROM one\n" + NEED, 2),
}


@pytest.mark.parametrize("name", DOCKERFILES)
def test_a_dockerfile_takes_nothing_of_another_team(machine: World, name: str) -> None:
    """The engine would build each of them; the submission is refused before anything is built, with the line."""
    text, line = DOCKERFILES[name]
    short = machine.image.removeprefix("sha256:")
    text = text.format(kept=machine.kept, prefix=short[:12], id=machine.image, base=machine.base, stage="own")
    folder = machine.folder(name, text)
    assert _stolen(machine, folder), "this attack proves nothing"
    said = call(machine.project, "submit", "-t", "thief", "-s", name, "--no-check", expect=2)
    assert "E212" in said.err and f"submissions/thief/{name}/Dockerfile:{line}" in said.err
    # The other doors of this machine, too: it holds another team's software.
    for command in ("pack", "try") if name == "from" else ():
        assert "E212" in cli(machine.project, command, "-t", "thief", "-s", name, expect=2).err


def test_a_base_that_takes_something_when_it_is_built_on(machine: World) -> None:
    """A trigger in a listed base image works as its instruction would."""
    folder = machine.folder(
        "trap", f"FROM {machine.base}\nONBUILD COPY --from={machine.kept} /secret /secret\n"
    )
    name = f"proctor/test-trap:{secrets.token_hex(4)}"
    trap = machine.engine.build(BuildSpec(folder, tag=name, timeout=300, labels=KEPT))
    try:
        folder = machine.folder("inherits", f"FROM {name}\n{NEED}")
        assert _stolen(machine, folder), "this attack proves nothing"
        call_ = ("submit", "-t", "thief", "-s", "inherits", "--no-check")
        said = cli(machine.project, *call_, expect=2, env={"RUNNER_BASES": name})
        assert "E212" in said.err and "Dockerfile:1" in said.err and "ONBUILD" in said.err
    finally:
        with machine.engine.clients.calling("removing an image of the test") as api:
            api.remove_image(trap.id, force=True)


def test_all_problems_are_listed_at_once(machine: World) -> None:
    machine.folder(
        "many",
        f"ARG B=debian:12\nFROM ${{B}}\nFROM ${{C}}\nCOPY --from={machine.kept} /a /b\n"
        f"RUN --mount=type=bind,from={tag(IMAGES[0])},target=/x true\nFROM proctor/other@sha256:{'0' * 64}\n",
        args={"B": machine.image},
    )
    said = cli(machine.project, "submit", "-t", "thief", "-s", "many", "--no-check", expect=2)
    for line in (2, 3, 4, 5, 6):
        assert f"many/Dockerfile:{line}: " in said.err
    assert "RUNNER_BASES" in said.err


def test_an_image_is_not_named_that_is_somebody_elses(machine: World) -> None:
    short = machine.image.removeprefix("sha256:")
    alias = f"thief/lucky:{secrets.token_hex(4)}"
    with machine.engine.clients.calling("naming an image") as api:
        api.tag(machine.image, *alias.split(":"))
    attacks = [short[:3], short[:12], short, machine.image, machine.kept, f"docker.io/{machine.kept}", alias]
    attacks += [tag(IMAGES[0]), f"docker.io/{tag(IMAGES[0])}"]
    for n, name in enumerate(attacks):
        machine.project.software(f"image{n}", team="thief", image=name)
        said = cli(machine.project, "submit", "-t", "thief", "-s", f"image{n}", "--no-check", expect=2)
        # Three digits may fit more than one image: then there is none of that name.
        assert "E212" in said.err or (n == 0 and "E204" in said.err), (name, said.err)
        assert "victim" not in said.err or "victim" in name
    # The team itself may name it, and what is listed may be named by anybody.
    machine.project.software("again", team="victim", image=alias)
    cli(machine.project, "submit", "-t", "victim", "-s", "again", "--no-check", "--dry-run")
    machine.project.software("listed", team="thief", image=alias)
    command = ("submit", "-t", "thief", "-s", "listed", "--no-check", "--dry-run")
    cli(machine.project, *command, env={"RUNNER_BASES": alias})
    with machine.engine.clients.calling("taking a name away") as api:
        api.remove_image(alias, noprune=True)


@pytest.mark.slow
def test_a_bundle_brings_its_image_along(machine: World, tmp_path: Path) -> None:
    """A bundle that only names what the engine holds is refused; so is an archive that only claims to be it."""
    machine.folder(
        "honest",
        "ARG BASE_IMAGE\nFROM ${BASE_IMAGE} AS one\nRUN echo 1 > /x\nFROM one\nCOPY --from=0 /x /y\n",
    )
    bundle = tmp_path / "b"
    cli(machine.project, "pack", "-t", "thief", "-s", "honest", "--no-check", "--to", str(bundle))
    data = json.loads((bundle / "bundle.json").read_text())
    own = data["image"]["id"]
    # Only named.
    (bundle / "image.tar").rename(tmp_path / "image.tar")
    for name in (machine.image, own):
        _resign(bundle, image={**data["image"], "id": name, "archive": None})
        assert "E204" in cli(machine.project, "register", str(bundle), expect=2).err
    # The victim's configuration with other layers: its identity, and nothing of what is in it.
    machine.engine.save(machine.engine.resolve(machine.image), tmp_path / "victim.tar")
    _hollow(tmp_path / "victim.tar", bundle / "image.tar")
    _resign(bundle, image={**data["image"], "id": machine.image})
    said = cli(machine.project, "register", str(bundle), expect=2)
    assert "E205" in said.err and "layer" in said.err
    # In the name of somebody else.
    (tmp_path / "image.tar").rename(bundle / "image.tar")
    for team, code in (("baselines", "E213"), ("organiser", "E208")):
        _resign(bundle, image=data["image"], team=team)
        assert code in cli(machine.project, "register", str(bundle), expect=2).err
    _resign(bundle, image=data["image"], team="victim")
    assert "E213" in cli(machine.project, "register", str(bundle), "--team", "thief", expect=2).err
    assert "E208" in cli(machine.project, "register", str(bundle), "--team", "../x", expect=2).err
    _resign(bundle, image=data["image"], team="thief")
    [receipt] = cli(machine.project, "register", str(bundle), "--team", "thief", "--json").json
    assert receipt["new"] and receipt["image"] == own


def _hollow(archive: Path, to: Path) -> None:
    """The archive with empty layers."""
    import io
    import tarfile

    with tarfile.open(archive) as old, tarfile.open(to, "w") as new:
        members = {m.name: m for m in old}
        [entry] = json.load(old.extractfile("manifest.json"))  # type: ignore[arg-type]
        config = old.extractfile(members[entry["Config"]]).read()  # type: ignore[union-attr]
        empty = io.BytesIO()
        tarfile.open(fileobj=empty, mode="w").close()
        names = [f"layer-{n}.tar" for n in range(len(entry["Layers"]))]
        manifest = json.dumps([{"Config": "config.json", "RepoTags": None, "Layers": names}]).encode()
        for name, content in [
            ("config.json", config),
            ("manifest.json", manifest),
            *((n, empty.getvalue()) for n in names),
        ]:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            new.addfile(member, io.BytesIO(content))


def test_the_same_files_are_ones_own(machine: World) -> None:
    """Whoever has the files may build the same image; and at home nobody is a stranger."""
    victim = machine.project.root / "submissions" / "victim" / "dense"
    folder = machine.folder("same", (victim / "Dockerfile").read_text())
    for name in ("main.py", "secret"):
        (folder / name).write_bytes((victim / name).read_bytes())
    cli(machine.project, "submit", "-t", "thief", "-s", "same", "--no-check", "--dry-run")
    home = Project(
        machine.project.root, machine.project.home.with_name("elsewhere"), machine.project.truths,
        docker_host=machine.project.docker_host, env=dict(machine.project.env),
    )  # fmt: skip
    home.software("own", team="thief", image=machine.image)
    cli(home, "pack", "-t", "thief", "-s", "own", "--no-check")
    machine.folder("own-build", f"FROM {machine.image}\n")
    cli(home, "pack", "-t", "thief", "-s", "own-build", "--no-check")


def test_a_digest_of_another_team_is_theirs() -> None:
    """A registry's digest is nobody's, unless it is what another team has registered here."""

    class Registry(FakeEngine):
        def resolve(self, image: str) -> ImageRef:
            return ImageRef("sha256:" + "1" * 64, names=(image,))

    digest = "registry.example/team/x@sha256:" + "2" * 64
    engine, own = Registry({}), ("registry.example",)
    mine = Origins("mine", engine, registries=own)
    assert mine.registry(digest, "sha256:" + "1" * 64).id == "sha256:" + "1" * 64
    assert mine.image(digest)
    theirs = Origins("mine", engine, registries=own, owners={"sha256:" + "1" * 64: frozenset({"other"})})
    both = Origins(
        "mine", engine, registries=own, owners={"sha256:" + "1" * 64: frozenset({"other", "mine"})}
    )
    for one in (theirs, both):
        with pytest.raises(RunnerError) as caught:
            one.registry(digest, "sha256:" + "1" * 64)
        assert caught.value.code == "E212"
        with pytest.raises(RunnerError) as caught:
            one.image(digest)
        assert caught.value.code == "E212"
    with pytest.raises(RunnerError) as caught:
        mine.registry(digest, "sha256:" + "3" * 64)
    assert caught.value.code == "E205"
    listed = Origins("mine", engine, registries=own, bases=(digest,), owners=theirs.owners)
    assert listed.registry(digest, "sha256:" + "1" * 64)
