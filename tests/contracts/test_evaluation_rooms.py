"""Evaluations by the platform's own evaluator share rooms. What a taken-over one tries, and what becomes of the others.

The image is a stand-in for ours: its evaluator runs what a hostile run file says as Python, as if that file had found a hole in
it, and then writes scores like any other. Foreign evaluators have a container each.
"""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from runner.engines import lending
from runner.engines.base import ContainerSpec
from runner.engines.docker.engine import DockerEngine
from runner.engines.docker.session import DockerSession
from runner.engines.lending import Rooms
from runner.execution.contract import RunFiles
from runner.execution.evaluation import Evaluated, EvaluationJob
from runner.execution.evaluator import Evaluator
from runner.model.container import ImageRef
from runner.tasks.load import load_task
from tests.worlds import definitions

pytestmark = pytest.mark.engine

EVALUATOR = """#!/usr/bin/env python3
import json, os, sys
request = json.load(open(os.environ["EVALUATOR_REQUEST"]))
paths = request["paths"]
text = open(os.path.join(paths["run"], request["run_file"])).read()
before = sorted(os.listdir(paths["output"])) + sorted(os.listdir(os.environ.get("TMPDIR", paths["output"])))
if text.startswith("#!"):
    exec(text, {"paths": paths})
value = len(text) / 10000
result = {"schema_version": 1, "status": "valid", "evaluator": {"name": "x", "version": "1"},
          "measures": {m["id"]: {"value": value, "topics": 1, "covered": 1, "interval": None} for m in request["measures"]},
          "findings": {"error": 0, "defect": 0, "warning": 0, "codes": {}}, "run_tag": None, "message": repr(before)}
scores = [{"measure": m["id"], "topic": "dev-1", "value": value} for m in request["measures"]]
for name, body in (("result.json", json.dumps(result)), ("scores.jsonl", "\\n".join(map(json.dumps, scores))), ("findings.jsonl", "")):
    open(os.path.join(paths["output"], name), "w").write(body)
"""

# What a taken-over evaluator does. Those that go on to write scores cost nothing but their room, if that.
LOOKS = """#!
import glob, os
def tried(act, *args):
    try: return repr(act(*args))[:60]
    except OSError as error: return error.errno
seen = {}
for pid in (p for p in os.listdir("/proc") if p.isdigit() and int(p) not in (os.getpid(), os.getppid())):
    for name in ("environ", "mem", "maps", "root", "cwd", "fd"):
        seen[f"/proc/{pid}/{name}"] = tried(lambda p: open(p, "rb").read(9) if not os.path.isdir(p) else os.listdir(p), f"/proc/{pid}/{name}")
    for number in (9, 15, 19): seen[f"kill {pid} {number}"] = tried(os.kill, int(pid), number)
for folder in ("/tmp", "/dev/shm", "/dev/mqueue", "/dev", "/room", "/run", "/var/tmp", "/opt/proctor", "/", "/inputs", "/truths", "/etc", "/root"):
    seen["plant " + folder] = tried(lambda p: open(p, "w").write("x"), folder + "/planted")
for path in ("/room/other", "/room/in2"): seen["mkdir " + path] = tried(os.mkdir, path)
seen["rename"] = tried(os.rename, "/room/out", "/room/mine")
seen["swap"] = tried(os.symlink, "/truths", "/room/link")
for act, args in ((os.setuid, (0,)), (os.setgid, (0,)), (os.setgroups, ([0],)), (os.chown, ("/room/out", 0, 0)), (os.chroot, ("/room",))):
    seen[act.__name__] = tried(act, *args)
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
who = {k: status[k].split() for k in ("Uid", "Gid", "Groups", "CapEff", "CapPrm", "CapBnd", "CapInh", "CapAmb", "NoNewPrivs", "Seccomp")}
writable = [p for top in glob.glob("/*") if top not in ("/proc", "/sys") for p, _, _ in os.walk(top) if os.access(p, os.W_OK)]
limits = {l[:26].strip(): l[26:].split()[0] for l in open("/proc/self/limits")}
import json
print(json.dumps({"seen": seen, "who": who, "writable": writable, "limits": limits, "adj": open("/proc/self/oom_score_adj").read().strip(),
                  "room": sorted(os.listdir("/room")), "env": dict(os.environ)}))
"""
STAYS = """#!
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for fd in range(3): os.close(fd)
        end = time.time() + 60
        while time.time() < end:
            for base in ("/room/in", "/room/out", "/room/tmp"):
                try:
                    for p, _, names in os.walk(base):
                        for n in names: open(os.path.join(p, n), "w").write("0")
                    open(base + "/result.json", "w").write("0")
                except OSError: pass
            time.sleep(0.01)
    os._exit(0)
"""
HOLDS = "#!\nimport os, time\nif os.fork() == 0:\n    time.sleep(60); os._exit(0)\n"  # keeps the streams open
FILLS = """#!
import os
tmp = os.environ["TMPDIR"]
os.makedirs(tmp + "/" + "/".join("d" * 300))
os.symlink("/truths", tmp + "/truths"); os.symlink("/room", tmp + "/room"); os.mkfifo(tmp + "/pipe"); os.link("/room/in/request.json", tmp + "/hard")
os.chmod("/room/in", 0o777)
n = 0
try:
    while True: open(f"{tmp}/{n}", "w").close(); n += 1
except OSError: pass
for k in range(n // 2): os.unlink(f"{tmp}/{k}")
os.makedirs("/room/out/deep/" + "/".join("x" * 40)); os.chmod("/room/out/deep", 0)
for name in ("a", "b", "c", "d"):
    try:
        with open(f"{tmp}/big-{name}", "wb") as big:
            while True: big.write(bytes(1 << 16))
    except OSError: pass
os.unlink(tmp + "/big-a")
os.chmod(tmp, 0)
"""
FORKS = """#!
import os, time
made = 0
try:
    while True:
        if os.fork() == 0:
            time.sleep(60); os._exit(0)
        made += 1
except OSError: pass
print("children", made)
"""
EATS = "#!\nheld = []\nwhile True: held.append(bytearray(1 << 20))\n"
CHILD_EATS = "#!\nimport os\nif os.fork() == 0:\n    held = []\n    while True: held.append(bytearray(1 << 20))\nos.wait()\n"
HANGS = "#!\nimport signal, time\nsignal.signal(15, signal.SIG_IGN)\nwhile True: time.sleep(1)\n"
SILENT = "#!\nimport os, time\nos.close(1); os.close(2); time.sleep(1.5)\n"
LOUD = "#!\nimport sys\nfor _ in range(4000): sys.stdout.write('x' * 4999 + '\\n')\n"
KILLS = """#!
import os
for pid in (1, -1):
    try: os.kill(pid, 9)
    except OSError: pass
"""
CRASHES = "#!\nimport os\nos.abort()\n"
LIES = "#!\nimport os\nfor name in ('result.json', 'scores.jsonl', 'findings.jsonl'): open('/room/out/' + name, 'w').write('{}')\nos._exit(0)\n"
LINKS = """#!
import os
for name in ("result.json", "scores.jsonl", "findings.jsonl"): os.symlink("/truths/qrels.txt", "/room/out/" + name)
os._exit(0)
"""


class Hostile(NamedTuple):
    """A program, the status of its own evaluation (empty: any), and whether the room is used again."""

    program: str
    status: str
    kind: str  # of the detail of an error
    again: bool
    number: float | None = None  # the exit code, or the limit, in the detail


HOSTILE = {
    "looks around": Hostile(LOOKS, "valid", "", True),
    "leaves a process behind": Hostile(STAYS, "", "", False),
    "leaves one that keeps its streams": Hostile(HOLDS, "valid", "", False),
    "fills its folders": Hostile(FILLS, "valid", "", True),
    "forks": Hostile(FORKS, "", "", False),
    "eats memory": Hostile(EATS, "error", "evaluator-memory", False),
    "has a child eat memory": Hostile(CHILD_EATS, "error", "evaluator-memory", False),
    "hangs": Hostile(HANGS, "error", "evaluator-time", False, 4.0),
    "closes its streams": Hostile(SILENT, "valid", "", True),
    "floods its log": Hostile(LOUD, "valid", "", True),
    "kills the first process": Hostile(KILLS, "error", "evaluator-exit", False, 137),
    "crashes": Hostile(CRASHES, "error", "evaluator-exit", False, 134),
    "breaks the contract": Hostile(LIES, "error", "contract-broken", False),
    "leaves links": Hostile(LINKS, "error", "results-missing", False),
}
HONEST = ("dev-1 Q0 d1 1 1.0 first\n", "dev-1 Q0 d1 1 1.0 the second\n")


class Done(NamedTuple):
    """An evaluation, and where its files are."""

    evaluated: Evaluated
    folder: Path

    @property
    def files(self) -> dict[str, bytes]:
        return {p.name: p.read_bytes() for p in self.folder.iterdir() if p.is_file()}


class Counting(DockerEngine):
    """The real engine; ``sessions`` are the ids of what was begun on it. A room is one container, a session of others two."""

    def __init__(self, engine: DockerEngine) -> None:
        super().__init__(engine.clients.host, engine_for="both-without-eviction")
        self.sessions: list[str] = []

    def session(self, attempt_id: str, **options: Any) -> AbstractContextManager[DockerSession]:
        self.sessions.append(attempt_id)
        return super().session(attempt_id, **options)


@dataclass
class Place:
    """A task whose evaluator is the stand-in, on the real engine."""

    engine: Counting
    evaluator: Evaluator
    folder: Path
    name: str

    def evaluate(self, text: str, rooms: Rooms | None = None, evaluator: Evaluator | None = None) -> Done:
        """Evaluate a run file with this text."""
        number = len(list(self.folder.iterdir()))
        folder, staging = self.folder / f"{number}-run", self.folder / f"{number}-evaluation"
        folder.mkdir()
        staging.mkdir()
        (folder / "run.txt").write_text(text)
        files, name = RunFiles(folder, "run.txt"), f"{self.name}-{number}"
        used, dataset = evaluator or self.evaluator, self.evaluator.task.datasets["dev"]
        done = EvaluationJob(
            used, dataset, "default", files, self.engine, name, staging, rooms=rooms
        ).evaluate()
        return Done(done, staging)


@pytest.fixture(scope="module")
def image(build_image: Callable[..., ImageRef]) -> ImageRef:
    text = base64.b64encode(EVALUATOR.encode()).decode()
    return build_image(
        "proctor/test-evaluation-rooms",
        f"RUN echo {text} | base64 -d > /usr/local/bin/evaluator && chmod 0755 /usr/local/bin/evaluator",
        'ENTRYPOINT ["evaluator"]',
    )


@pytest.fixture
def place(engine: DockerEngine, image: ImageRef, tmp_path: Path) -> Iterator[Place]:
    config = definitions.project(tmp_path / "project")
    limits = {"memory": "96MiB", "pids": 32, "wall_clock": "4s", "output": "2MiB", "tmp": "4MiB", "log": "64KiB"}  # fmt: skip
    # Data of its own: its volumes go away with the test.
    folder = definitions.write_task(config, evaluator={"limits": limits}, limits={"output": "2MiB"})
    (folder / "datasets/dev/truths/qrels.txt").write_text(f"dev-1 0 {secrets.token_hex(8)} 1\n")
    (folder / "datasets/dev/inputs/queries.jsonl").write_text(
        json.dumps({"qid": "dev-1", "query": secrets.token_hex(8)}) + "\n"
    )
    task = load_task(config, "toy")
    evaluator = replace(Evaluator.of(task, [task.datasets["dev"]], engine, image.id), default=True)
    (tmp_path / "work").mkdir()
    counting = Counting(engine)
    yield Place(counting, evaluator, tmp_path / "work", f"test-{secrets.token_hex(6)}")
    digests = {d.removeprefix("sha256:")[:32] for d in evaluator.digests["dev"].values()}
    for volume, marker in engine.markers().items():
        if volume.split("-")[2] in digests:
            engine.clients.remove_volume(volume)
            engine.clients.remove_volume(marker)
    counting.close()


def seen_by(done: Done) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((done.folder / "logs/stdout.log").read_text())
    return found


@pytest.mark.slow
@pytest.mark.parametrize("attack", HOSTILE)
def test_a_taken_over_evaluator_costs_its_own_run_only(place: Place, attack: str) -> None:
    """Runs before and after it have the very files that they have alone."""
    hostile = HOSTILE[attack]
    alone = [place.evaluate(text).files for text in HONEST]
    place.engine.sessions.clear()
    with Rooms(place.engine) as rooms:
        first = place.evaluate(HONEST[0], rooms)
        taken = place.evaluate(hostile.program, rooms)
        second = place.evaluate(HONEST[1], rooms)
        third = place.evaluate(HONEST[0], rooms)
    assert [first.files, second.files, third.files] == [alone[0], alone[1], alone[0]]
    assert json.loads(first.files["result.json"])["message"] == "[]"
    assert taken.evaluated.status == hostile.status or not hostile.status, taken.evaluated.detail
    detail = taken.evaluated.detail
    if hostile.kind:
        assert detail is not None and detail.kind == hostile.kind, detail
        assert hostile.number is None or hostile.number in detail.fields.values(), detail
    assert len(place.engine.sessions) == (1 if hostile.again else 2)
    left = [labels.get("proctor.attempt", "") for labels in place.engine.clients.labelled(owner=None)]
    assert not [attempt for attempt in left if attempt.startswith(place.name)]


FROM_THE_SOFTWARE = """
import os, glob
seen = [p for p in os.listdir("/proc") if p.isdigit() and int(p) not in (1, os.getpid())]
seen += [p for p in ("/truths", "/room", "/inputs/truths", "/var/run/docker.sock") if os.path.lexists(p)]
seen += [word for line in open("/proc/self/mountinfo") for word in line.split() if word in ("/truths", "/room")]
try: os.kill(-1, 9)
except OSError as error: seen.append(error.errno)
for folder in ("/room/in", "/room/out", "/tmp", "/dev/shm"):
    try: open(folder + "/planted", "w").write("x")
    except OSError: pass
print(seen)
"""


def test_a_software_gains_nothing_by_a_room_that_stays_while_it_runs(
    place: Place, scratch_image: ImageRef, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It neither sees nor reaches the room, and its evaluation finds nothing there but what it is given."""
    monkeypatch.setattr(lending, "IDLE", 120.0)  # however slow this machine is
    with Rooms(place.engine) as rooms:
        place.evaluate("an earlier run", rooms)
        with place.engine.session(place.name) as session:
            limits = replace(place.evaluator.task.limits, wall_clock=60)
            software = ("python3", "-c", FROM_THE_SOFTWARE)
            handle = session.start(ContainerSpec("software", scratch_image, software, limits))
            assert handle.wait(60).code == 0, handle.logs("stderr", 2000)
            assert handle.logs("stdout", 2000).split() == [b"[3]"], (
                "no process of ours but its own, and nobody to kill"
            )
        done = place.evaluate("a run", rooms)
    assert (done.evaluated.status, str(done.evaluated.detail)) == ("valid", "[]")
    assert len(place.engine.sessions) == 2


def test_what_it_sees_and_may_do(place: Place) -> None:
    """Everything of the sandbox is on a program in a room, and nothing of any other run can be reached."""
    with Rooms(place.engine) as rooms:
        first = seen_by(place.evaluate(LOOKS, rooms))
        second = seen_by(place.evaluate(LOOKS, rooms))
    uid = first["who"]["Uid"][0]
    assert first["who"]["Uid"] == first["who"]["Gid"] == [uid] * 4 and int(uid) > 20_000
    assert first["who"]["Groups"] in ([], [uid])
    assert second["who"]["Uid"] != first["who"]["Uid"]
    for found in (first, second):
        assert {found["who"][k][0] for k in ("CapEff", "CapPrm", "CapBnd", "CapInh", "CapAmb")} == {"0" * 16}
        assert (found["who"]["NoNewPrivs"], found["who"]["Seccomp"]) == (["1"], ["2"])
        assert found["limits"]["Max core file size"] == "0" and found["limits"]["Max file size"] == str(
            64 << 20
        )
        assert found["adj"] == "500"
        # Where message queues are, of which nobody may have any.
        assert set(found["writable"]) - {"/dev/mqueue"} == {"/room/out", "/room/tmp"}
        assert found["room"] == ["in", "out", "tmp"]
        processes = {name.split("/")[2] for name in found["seen"] if name.startswith("/proc/")}
        assert len(processes) == 2  # the room's init, and what waits
        refused = {
            name: error
            for name, error in found["seen"].items()
            if not (name.endswith("/maps") and error == "b''") and name != "chown"
        }
        assert all(isinstance(error, int) for error in refused.values()), refused
        assert "SECRET" not in json.dumps(found["env"])
        assert set(found["env"]) >= {"HOME", "TMPDIR", "EVALUATOR_REQUEST"}


@pytest.mark.slow
@pytest.mark.parametrize(("ours", "runs", "containers"), [(True, 12, 1), (False, 3, 3)])
def test_only_runs_of_our_evaluator_share_a_container(
    place: Place, ours: bool, runs: int, containers: int
) -> None:
    evaluator = replace(place.evaluator, default=ours)
    with Rooms(place.engine) as rooms:
        done = [place.evaluate(HONEST[0], rooms, evaluator) for _ in range(runs)]
    assert {d.evaluated.status for d in done} == {"valid"}
    assert len(place.engine.sessions) == containers
