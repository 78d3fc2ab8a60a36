"""A container made for TIRA runs here as it is: its command, its paths, its variables, and what it may need beyond."""

from __future__ import annotations

import base64
import errno
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from runner.engines.docker.engine import DockerEngine
from runner.execution.machine import Machine
from runner.execution.trials.software import check_submission
from runner.model.container import ImageRef
from runner.submissions.load import load_submission
from runner.tasks.data_files import files_digest, folder_files
from runner.tasks.load import load_task
from runner.views.audience import Audience
from runner.views.redact import RunView
from tests.worlds.mini import GOOD, Project, cli

pytestmark = pytest.mark.engine
TEAM = Audience("team", "alpha")
# One topic a line comes in, ten documents a topic go out; reads standard input, so it must be given by a pipe.
FILTER = """import json, sys
for line in sys.stdin:
    for rank in range(1, 11):
        print(json.loads(line)["qid"], "Q0", f"doc-{rank:02}", rank, 20 - rank, "mini")
"""


@pytest.fixture
def ran(live: Project, engine: DockerEngine, evaluator_image: ImageRef) -> Callable[..., Any]:
    """Runs one software on the public dataset and returns what its team is shown."""

    def run(name: str = "one", code: str = GOOD, **keys: Any) -> RunView:
        live.software(name, code, **keys)
        task = load_task(live.config, "mini")
        submission = load_submission(live.config, "alpha", name)
        assert submission.image is not None
        image = engine.resolve(submission.image)
        machine = Machine(live.config, engine=engine, images={"evaluator": evaluator_image.id})
        with check_submission(machine, submission, image, task, task.datasets["dev"], "default") as checked:
            return checked.view(TEAM)

    return run


@pytest.fixture
def image(build_image: Callable[..., ImageRef], engine: DockerEngine) -> Iterator[Callable[..., str]]:
    """Builds an image on the base image; it is removed at the end."""
    made: list[str] = []

    def build(name: str, *lines: str) -> str:
        made.append(build_image(f"proctor/test-tira-{name}", *lines).id)
        return made[-1]

    yield build
    with engine.clients.calling("removing images") as api:
        for one in made:
            api.remove_image(one, force=True)


def _file(path: str, text: str) -> str:
    """A line of a Dockerfile that writes a file."""
    return f"RUN mkdir -p $(dirname {path}) && echo {base64.b64encode(text.encode()).decode()} | base64 -d > {path}"


def _good(view: RunView) -> None:
    assert view["outcome"]["name"] == "scored", dict(view)


@pytest.mark.slow
def test_a_command_string_with_a_pipe_and_a_glob(
    ran: Callable[..., RunView], image: Callable[..., str]
) -> None:
    filtered = image("filter", _file("/filter.py", FILTER), 'ENTRYPOINT ["/bin/false"]')
    command = "cat $inputDataset/quer*.jsonl | python3 /filter.py > ${outputDir}/run.txt"
    _good(ran(image=filtered, command=command))
    # A failing command in the middle of a line is the software's affair, as sh has it.
    view = ran(image=filtered, command="cat $inputDataset/none* > $outputDir/run.txt && true")
    assert view["outcome"]["verdict"] == "run-error"


def test_a_list_is_run_without_a_shell_and_has_the_variables_of_tira(ran: Callable[..., RunView]) -> None:
    """A star stays a star, and placeholders are filled in all the same."""
    code = GOOD + "\nprint(sys.argv[1:])\nprint(sorted(os.environ.items()))"
    view = ran(
        command=["python3", "-c", code, "*", "$inputDataset/queries.jsonl", "${outputDir}", "$HOME;id"]
    )
    _good(view)
    said = "\n".join(view["log"]["stdout"])
    assert "['*', '/tira-data/input/queries.jsonl', '/tira-data/output', '$HOME;id']" in said
    for name, value in {
        "inputDataset": "/tira-data/input",
        "outputDir": "/tira-data/output",
        "TIRA_INPUT_DATASET": "/tira-data/input",
        "TIRA_OUTPUT_DIR": "/tira-data/output",
        "TIRA_DATASET_ID": "dev",
    }.items():
        assert repr((name, value)) in said
    assert not any(name in said for name in ("inputRun", "RUNNER", "DOCKER_HOST"))


def test_the_images_own_entrypoint_and_folder(ran: Callable[..., RunView], image: Callable[..., str]) -> None:
    own = image("own", _file("/app/run.py", GOOD + "\nprint(os.getcwd(), sys.argv[1:])"), "WORKDIR /app", 'ENTRYPOINT ["python3", "run.py"]', 'CMD ["reversed"]')  # fmt: skip
    view = ran(image=own, command=None)
    _good(view)
    assert "/app ['reversed']" in view["log"]["stdout"]


@pytest.mark.slow
def test_the_run_of_another_software_as_input(ran: Callable[..., RunView], live: Project) -> None:
    live.software("first")
    view = ran("second", inputs={"ranking": "first"}, command="cp $inputRun/run.txt $outputDir/ && test ! -w $inputRun/run.txt")  # fmt: skip
    _good(view)


@pytest.mark.slow
def test_an_image_that_insists_on_root_and_on_its_own_folder(
    ran: Callable[..., RunView], image: Callable[..., str], live: Project
) -> None:
    """Its user does not count; a folder that it must write is granted by the organiser, and named on the run."""
    code = GOOD + "\nopen('/cache/x', 'w').write('x')\nprint('uid', os.getuid())"
    stubborn = image("root", _file("/app/run.py", code), "RUN mkdir /cache", "USER root", 'ENTRYPOINT ["python3", "/app/run.py"]')  # fmt: skip
    view = ran(image=stubborn, command=None)
    assert view["outcome"]["verdict"] == "run-error"
    assert os.strerror(errno.EROFS) in "\n".join(view["log"]["stderr"])
    live.write_task(exceptions={"alpha/one": {"writable": ["/cache"], "writable_bytes": "1MiB"}})
    view = ran(image=stubborn, command=None)
    _good(view)
    assert view["exceptions"]["writable"] == ["/cache"]
    [uid] = [line for line in view["log"]["stdout"] if line.startswith("uid")]
    assert int(uid.split()[1]) >= 20000
    # Granted to one software, not to another.
    assert ran("two", image=stubborn, command=None)["outcome"]["verdict"] == "run-error"


def test_root_is_refused_where_the_engine_does_not_map_it_away(
    live: Project, engine: DockerEngine, ran: Callable[..., RunView]
) -> None:
    live.write_task(exceptions={"alpha/one": {"root": True}})
    if engine.user_namespaces:
        view = ran(code=GOOD + "\nprint('uid', os.getuid())")
        _good(view)
        assert "uid 0" in view["log"]["stdout"] and view["exceptions"]["root"]
        return
    live.software("one", code=GOOD)
    said = cli(live, "try", "-t", "alpha", "-s", "one", expect=3)
    assert "E305" in said.err and "userns-remap" in said.err


def test_a_model_folder_by_digest(ran: Callable[..., RunView], live: Project) -> None:
    folder = live.root / "tasks" / "mini" / "models" / "tiny"
    folder.mkdir(parents=True)
    (folder / "weights.txt").write_text("0.5")
    digest = "sha256:" + files_digest(folder_files(folder))
    model = {"path": "models/tiny", "target": "/models/tiny", "digest": digest}
    live.write_task(models=[model])
    code = GOOD + "\nprint('weights', open('/models/tiny/weights.txt').read())"
    view = ran(code=code + "\ntry: open('/models/tiny/x', 'w')\nexcept OSError as e: print(e.strerror)")
    _good(view)
    assert view["log"]["stdout"][-2:] == ["weights 0.5", os.strerror(errno.EROFS)]
    # What the digest does not name is never mounted under it.
    live.write_task(models=[{**model, "digest": "sha256:" + "5" * 64}])
    said = cli(live, "try", "-t", "alpha", "-s", "one", expect=4)
    assert "models/tiny" in said.err and "E40" in said.err


def test_gpus_that_are_not_there_are_refused_before_anything_starts(
    live: Project, engine: DockerEngine
) -> None:
    live.write_task(limits={"gpus": 64})
    live.software("one")
    for command in ("try", "submit"):
        assert "E305" in cli(live, command, "-t", "alpha", expect=3).err
    assert cli(live, "runs", "--json").json == []


def test_a_gpu_asked_for_later_holds_nothing_up(live: Project) -> None:
    """The task changes after the registration: its runs wait, and those of other tasks are done."""
    live.write_task("other")
    live.software("one")
    live.software("two", task="other")
    cli(live, "submit", "-t", "alpha", "--no-check")
    live.write_task(limits={"gpus": 64})
    said = cli(live, "evaluate", "--all", expect=3)
    assert "E305" in said.err
    rows = {row["software"]: row for row in cli(live, "runs", "--json").json}
    assert rows["one"]["outcome"]["name"] == "pending" and rows["one"]["attempts"] == 0
    assert rows["two"]["outcome"]["name"] == "scored"
