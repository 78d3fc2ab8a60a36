"""``docker compose up`` for participants, with the real Compose."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import docker
import pytest

from runner.engines.docker.engine import DockerEngine
from runner.model import config
from runner.model.container import ImageRef
from runner.provision import compose as compose_override
from runner.provision.engine import docker_host
from runner.provision.images import IMAGES, ensure_images, tag
from runner.tasks.load import load_task
from tests.e2e.test_server import until
from tests.verdicts import cases
from tests.worlds.compose_project import ROOT, Project, project

pytestmark = pytest.mark.engine
EXIT_CODE = ("--exit-code-from", "evaluator")


@pytest.fixture(scope="module")
def evaluator(engine: DockerEngine) -> str:
    ensure_images(engine, config.load(cwd=ROOT))
    return tag(IMAGES[0])


@pytest.fixture(scope="module")
def host(engine: DockerEngine) -> str:
    found = docker_host(config.load(cwd=ROOT))
    assert found is not None
    return found


@pytest.fixture(scope="module")
def base(build_image: Callable[..., ImageRef]) -> str:
    """The base image under a name of this module, because Compose takes names and no identities."""
    build_image("proctor-test/compose-base:1")
    return "proctor-test/compose-base:1"


@pytest.fixture
def here(tmp_path: Path, host: str, evaluator: str, base: str) -> Iterator[Project]:
    with project(tmp_path, host, evaluator, base) as made:
        yield made


def exit_code(here: Project, service: str = "software") -> int:
    """Return the exit code of a service's container."""
    client = docker.DockerClient(base_url=here.host, timeout=60)
    state = client.api.inspect_container(f"{here.name}-{service}-1")["State"]
    client.close()
    return int(state["ExitCode"])


def of_evaluator(text: str) -> str:
    """The lines that the evaluator printed."""
    return "\n".join(line for line in text.splitlines() if line.startswith("evaluator-1"))


@pytest.mark.slow
def test_a_good_software_is_scored_and_runs_under_the_tasks_limits(here: Project, host: str) -> None:
    here.add("good")
    ended = here.up("good")
    assert ended.code == 0, ended.text
    assert re.search(r"\bVALID: run\.txt.* 40 ", ended.text)
    assert "nDCG@10" in ended.text and "4 of 4" in ended.text
    assert "TEAM=misbehaving SOFTWARE=good" in ended.text, "it names the command that checks the rest"

    limits = load_task(config.load({"RUNNER_ROOT": str(here.folder)}), cases.TASK).limits
    client = docker.DockerClient(base_url=host, timeout=60)
    for service in ("software", "evaluator"):
        container = client.api.inspect_container(f"{here.name}-{service}-1")
        asked = container["HostConfig"]
        assert asked["NetworkMode"] == "none"
        assert asked["ReadonlyRootfs"] is True
        assert asked["CapDrop"] == ["ALL"] and not asked["CapAdd"]
        assert any(option.startswith("no-new-privileges") for option in asked["SecurityOpt"])
        assert not container["Config"]["User"].startswith(("0", "root"))
        # Only the software may write to the output, and nobody to the data.
        writable = [mount["Destination"] for mount in container["Mounts"] if mount["RW"]]
        assert writable == (["/tira-data/output"] if service == "software" else [])
        if service == "software":
            assert asked["Memory"] == asked["MemorySwap"] == limits.memory
            assert asked["NanoCpus"] == int(limits.cpus * 10**9)
            assert asked["PidsLimit"] == limits.pids
            assert not any("truths" in mount["Source"] for mount in container["Mounts"])
    client.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "code", "exits", "shown"),
    [
        # Compose sends every container its stop signal as soon as the first one has ended: a slow software goes on.
        ("good-sleeper", 0, 0, " VALID: run.txt"),
        ("exits-1", 1, 1, " FAILED: "),
        # The evaluator cannot read the exit code of the software: it asks the reader to look at it.
        ("exits-3-after-run", 0, 3, "'software-1 "),
        ("memory-bomb", 1, 137, "137: "),
        ("duplicate-document", 1, 0, "run.txt:5: F012 error:"),
        ("symlink-truths", 1, 0, "F002 error"),
    ],
)
def test_the_exit_code_and_the_evaluator_say_how_it_ended(
    here: Project, case: str, code: int, exits: int, shown: str
) -> None:
    here.add(case)
    ended = here.up(case, *EXIT_CODE)
    assert (ended.code, exit_code(here)) == (code, exits), ended.text
    assert shown in of_evaluator(ended.text), ended.text
    assert ("nDCG@10" in ended.text) == (code == 0)


@pytest.mark.slow
def test_a_software_that_hangs_is_stopped_at_its_time_limit_with_exit_code_from(here: Project) -> None:
    here.add("run-then-hangs")
    limit = load_task(config.load({"RUNNER_ROOT": str(here.folder)}), cases.TASK).limits.wall_clock
    begun = time.monotonic()
    ended = here.up("run-then-hangs", *EXIT_CODE)
    assert limit <= time.monotonic() - begun < limit + 60
    assert exit_code(here) == 137 and "137: " in of_evaluator(ended.text), ended.text


@pytest.mark.slow
def test_compose_kill_stops_a_software_that_hangs_and_its_run_is_evaluated(here: Project) -> None:
    """Ctrl-C waits as long as the time limit of the software: Compose's own stop is harmless with --exit-code-from."""
    here.add("run-then-hangs")
    file = here.folder / "tasks" / cases.TASK / "compose.yaml"
    text = file.read_text()
    assert text.count("stop_grace_period: 5s") == 1, "of the software"
    file.write_text(text.replace("stop_grace_period: 5s", "stop_grace_period: 600s"))
    up = here.begin("up", TEAM=cases.TEAM, SOFTWARE="run-then-hangs", TASK=cases.TASK)
    try:
        client = docker.DockerClient(base_url=here.host, timeout=60)
        until(lambda: client.containers.list(filters={"name": f"{here.name}-software-1"}), 100)
        client.close()
        killed = here.compose("kill", TASK=cases.TASK)
        assert killed.code == 0, killed.text
        said = up.communicate(timeout=60)[0].decode()
        assert exit_code(here) == 137 and "'software-1 " in of_evaluator(said), said
    finally:
        up.kill()
        up.wait()
        here.compose("kill", TASK=cases.TASK)


@pytest.mark.slow
def test_the_output_of_an_earlier_run_is_not_scored(here: Project) -> None:
    here.add("good")
    here.add("writes-nothing")
    assert here.up("good", *EXIT_CODE).code == 0
    ended = here.up("writes-nothing", *EXIT_CODE)
    assert ended.code == 1 and " FAILED: " in of_evaluator(ended.text), ended.text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "shown"),
    [("tries-network", "Network is unreachable"), ("writes-to-input", "Read-only file system")],
)
def test_a_software_has_no_network_and_cannot_change_its_input(here: Project, case: str, shown: str) -> None:
    here.add(case)
    assert shown in here.up(case).text  # the error texts of Linux


@pytest.mark.slow
def test_a_baseline_runs_from_this_repository(here: Project) -> None:
    """The committed tasks/vaswani/compose.yaml and a baseline's own Dockerfile, together."""
    (here.folder / "tasks" / "vaswani").symlink_to(ROOT / "tasks" / "vaswani")
    (here.folder / "submissions" / "baselines").symlink_to(ROOT / "submissions" / "baselines")
    ended = here.compose("up", *EXIT_CODE, SOFTWARE="random")
    assert ended.code == 0, ended.text
    assert re.search(r"\bVALID: run\.txt.* 31,000 ", ended.text) and "31 of 31" in ended.text


def test_without_variables_it_is_a_baseline(here: Project) -> None:
    (here.folder / "tasks" / "vaswani").symlink_to(ROOT / "tasks" / "vaswani")
    ended = here.compose("config", "--format", "json")
    assert ended.code == 0, ended.text
    software = json.loads(ended.text)["services"]["software"]
    assert software["build"]["context"].endswith("submissions/baselines/dirichlet")
    assert software["environment"]["TIRA_DATASET_ID"] == "dev"


@pytest.mark.slow
def test_after_a_set_up_it_needs_no_variables_and_no_network(here: Project) -> None:
    """Our images and the base image are those of this machine; a build of copies alone fetches nothing."""
    (here.folder / "tasks" / "vaswani").symlink_to(ROOT / "tasks" / "vaswani")
    (here.folder / "submissions" / "baselines").symlink_to(ROOT / "submissions" / "baselines")
    unset = {"EVALUATOR_IMAGE": "", "SIDECARS_IMAGE": "", "BASE_IMAGE": ""}
    override = here.folder / compose_override.NAME
    assert compose_override.write(here.folder, here.base, {"evaluator": here.evaluator})
    assert not compose_override.write(here.folder, here.base, {"evaluator": here.evaluator}), "nothing new"
    services = json.loads(here.compose("config", "--format", "json", **unset).text)["services"]
    assert services["software"]["build"]["args"]["BASE_IMAGE"] == here.base
    assert services["prepare"]["image"] == services["evaluator"]["image"] == here.evaluator
    ended = here.compose("up", *EXIT_CODE, **unset)
    assert ended.code == 0, ended.text
    assert "31 of 31" in ended.text and "Pulling" not in ended.text
    assert f"{here.evaluator} Built" not in ended.text, "our image is there"

    override.write_text("services: {}\n")
    assert not compose_override.write(here.folder, here.base, {}), "somebody else's file"
    assert override.read_text() == "services: {}\n"
