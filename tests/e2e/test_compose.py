"""``docker compose up`` for participants, with the real Compose."""

from __future__ import annotations

import json
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


def test_a_good_software_is_scored_and_runs_under_the_tasks_limits(here: Project, host: str) -> None:
    here.add("good")
    ended = here.up("good")
    assert ended.code == 0, ended.text
    assert "VALID: run.txt: no problems in 40 lines" in ended.text
    assert "nDCG@10" in ended.text and "4 of 4" in ended.text
    assert "make try TEAM=misbehaving SOFTWARE=good" in ended.text, "it says what it does not check"

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


def test_exit_code_from_evaluator_waits_for_a_slow_software(here: Project) -> None:
    """Compose sends every container its stop signal as soon as the first one has ended: it must do no harm."""
    here.add("good-sleeper")
    ended = here.up("good-sleeper", *EXIT_CODE)
    assert ended.code == 0, ended.text
    assert "software-1 exited with code 0" in ended.text
    assert "VALID: run.txt" in ended.text


def test_a_crashing_software_is_told_so_by_the_evaluator(here: Project) -> None:
    here.add("exits-1")
    ended = here.up("exits-1", *EXIT_CODE)
    assert ended.code == 1, ended.text
    assert "cannot find my model" in ended.text
    assert "software-1 exited with code 1" in ended.text
    assert "FAILED: the software left no run.txt (or run.txt.gz) in $outputDir." in ended.text


def test_a_crash_after_writing_a_run_is_not_hidden(here: Project) -> None:
    """Compose does not tell the evaluator how the software ended, so the reader is told to look."""
    here.add("exits-3-after-run")
    ended = here.up("exits-3-after-run")
    assert "software-1 exited with code 3" in ended.text
    assert "unless 'software-1 exited with code 0' stands above, the run counts as failed" in ended.text


def test_a_software_that_hangs_is_ended_at_the_time_limit_where_somebody_waits_for_the_exit_code(
    here: Project,
) -> None:
    here.add("run-then-hangs")
    limit = load_task(config.load({"RUNNER_ROOT": str(here.folder)}), cases.TASK).limits.wall_clock
    begun = time.monotonic()
    ended = here.up("run-then-hangs", *EXIT_CODE)
    assert limit <= time.monotonic() - begun < limit + 60
    assert "software-1 exited with code 137" in ended.text
    assert "the run counts as failed" in ended.text and "137: it was killed" in ended.text


def test_a_software_that_hangs_is_ended_at_once_by_kill_and_its_run_is_looked_at(here: Project) -> None:
    """Ctrl-C waits for it, as long as its time limit: Compose's own stop, with --exit-code-from, must do no harm."""
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
    finally:
        up.kill()
        up.wait()
        here.compose("kill", TASK=cases.TASK)
    assert "software-1 exited with code 137" in said and "the run counts as failed" in said


def test_a_software_that_needs_too_much_memory_is_told_what_137_means(here: Project) -> None:
    here.add("memory-bomb")
    ended = here.up("memory-bomb", *EXIT_CODE)
    assert ended.code == 1, ended.text
    assert (
        "software-1 exited with code 137" in ended.text
        and "FAILED: the software left no run.txt" in ended.text
    )
    assert "137: it was killed, mostly at its limit of memory" in ended.text


def test_an_invalid_run_gets_its_findings_and_no_scores(here: Project) -> None:
    here.add("duplicate-document")
    ended = here.up("duplicate-document", *EXIT_CODE)
    assert ended.code == 1, ended.text
    assert "run.txt:5: F012 error:" in ended.text and "Fix:" in ended.text
    assert "INVALID: run.txt: 1 error" in ended.text
    assert "nDCG@10" not in ended.text


def test_a_planted_link_to_the_truths_is_not_followed(here: Project) -> None:
    here.add("symlink-truths")
    ended = here.up("symlink-truths", *EXIT_CODE)
    assert ended.code == 1, ended.text
    assert "F002 error" in ended.text
    assert "nDCG@10" not in ended.text


def test_yesterdays_output_does_not_pass_for_todays(here: Project) -> None:
    here.add("good")
    here.add("writes-nothing")
    assert here.up("good", *EXIT_CODE).code == 0
    ended = here.up("writes-nothing", *EXIT_CODE)
    assert ended.code == 1, ended.text
    assert "FAILED: the software left no run.txt" in ended.text


@pytest.mark.parametrize(
    ("case", "shown"),
    [
        ("tries-network", "Network is unreachable"),
        ("writes-to-input", "Read-only file system"),
        ("memory-bomb", "software-1 exited with code 137"),
    ],
)
def test_the_room_is_closed(here: Project, case: str, shown: str) -> None:
    here.add(case)
    ended = here.up(case)
    assert shown in ended.text


def test_a_baseline_runs_from_this_repository(here: Project) -> None:
    """The committed tasks/vaswani/compose.yaml and a baseline's own Dockerfile, together."""
    (here.folder / "tasks" / "vaswani").symlink_to(ROOT / "tasks" / "vaswani")
    (here.folder / "submissions" / "baselines").symlink_to(ROOT / "submissions" / "baselines")
    ended = here.compose("up", *EXIT_CODE, SOFTWARE="random")
    assert ended.code == 0, ended.text
    assert "VALID: run.txt: no problems in 31,000 lines" in ended.text
    assert "31 of 31" in ended.text


def test_without_variables_it_is_a_baseline(here: Project) -> None:
    (here.folder / "tasks" / "vaswani").symlink_to(ROOT / "tasks" / "vaswani")
    ended = here.compose("config", "--format", "json")
    assert ended.code == 0, ended.text
    software = json.loads(ended.text)["services"]["software"]
    assert software["build"]["context"].endswith("submissions/baselines/dirichlet")
    assert software["environment"]["TIRA_DATASET_ID"] == "dev"


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
