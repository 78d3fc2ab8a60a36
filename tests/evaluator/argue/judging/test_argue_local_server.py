"""``huggingface_local``: a server program is started when there is something to ask, and ended with the judging."""

from __future__ import annotations

import functools
import json
import sys
import time
from pathlib import Path

import pytest

from evaluator.errors import EvaluatorError
from evaluator.judges.local_server import LocalServer, command, lacking, served_name
from tests.evaluator.argue.conftest import Argue
from tests.worlds.judging_play import LOOKUP, NUGGETS, REPORT, rows

SERVER = Path(__file__).parents[3] / "worlds" / "openai_server.py"
# A server program as others write it: notes its arguments and its process, and serves on --port.
PROGRAM = """#!{python}
import json, os, pathlib, sys
words = sys.argv[1:]
note = pathlib.Path({note!r})
with note.open("a") as out:
    out.write(json.dumps({{"pid": os.getpid(), "words": words}}) + "\\n")
{before}
port = words[words.index("--port") + 1]
os.execv(sys.executable, [sys.executable, {server!r}, "--port", port, "--text", "YES", "--record", {record!r}])
"""


class Programs:
    """Fake server programs on the PATH, and what they noted."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.note, self.record = folder / "bin", folder / "note.jsonl", folder / "requests.jsonl"
        self.folder.mkdir()
        monkeypatch.setenv("PATH", str(self.folder))
        monkeypatch.setattr("evaluator.judges.local_server.installed", lambda _: False)

    def add(self, name: str, before: str = "") -> None:
        path = self.folder / name
        names = {"note": str(self.note), "server": str(SERVER), "record": str(self.record)}
        path.write_text(PROGRAM.format(python=sys.executable, before=before, **names))
        path.chmod(0o755)

    @property
    def started(self) -> list[dict[str, object]]:
        return rows(self.note) if self.note.exists() else []

    def alive(self) -> bool:
        """Whether one of them still runs."""
        return any(Path(f"/proc/{one['pid']}").exists() for one in self.started)


@pytest.fixture
def programs(clean: Path, monkeypatch: pytest.MonkeyPatch) -> Programs:
    return Programs(clean, monkeypatch)


@pytest.fixture
def judge(argue: Argue) -> Argue:
    """Return a function that has the sample judged by the model that its first word names."""
    return functools.partial(argue, REPORT, NUGGETS, "x", "-C", LOOKUP, "-p", "huggingface_local", "-m")


def test_a_name_is_served_by_vllm(programs: Programs, judge: Argue) -> None:
    programs.add("vllm")
    assert judge("some/model").code == 0
    [one] = programs.started
    words = one["words"]
    assert isinstance(words, list) and words[:2] == ["serve", "some/model"]
    assert words[words.index("--host") + 1] == "127.0.0.1"
    assert not programs.alive()
    asked = [json.loads(r["body"]) for r in rows(programs.record) if r["target"].endswith("completions")]
    assert len(asked) == 22 and {a["model"] for a in asked} == {"some/model"}
    [judged] = rows(Path("x.judgments.jsonl"))
    assert judged["judge"]["name"] == "huggingface_local"


def test_a_file_is_served_by_llama_cpp_under_its_name(
    programs: Programs, judge: Argue, tmp_path: Path
) -> None:
    programs.add("llama-server")
    (tmp_path / "tiny.gguf").write_bytes(b"GGUF")
    assert judge(tmp_path / "tiny.gguf").code == 0
    [judged] = rows(Path("x.judgments.jsonl"))
    assert judged["judge"]["model"] == "tiny.gguf"  # not where it lies here
    assert str(tmp_path) not in Path("x.replies.jsonl").read_text()
    assert not programs.alive()


def test_no_server_is_started_without_a_question(programs: Programs, judge: Argue) -> None:
    programs.add("vllm")
    assert judge("some/model", "--dry-run").code == 0
    assert judge("some/model", "--max-calls", "1").code == 2
    assert programs.started == []
    assert judge("some/model").code == judge("some/model", "--rerun").code == 0
    assert len(programs.started) == 1
    (programs.folder / "vllm").unlink()
    assert judge("some/model", "--rerun").code == 0  # not even a server is needed
    said = judge("some/other")
    assert said.code == 2
    assert all(words in said.err for words in ("pip install vllm", "-p from_env", "-p lexical"))


def test_a_server_that_ends_at_once(programs: Programs, judge: Argue) -> None:
    programs.add("vllm", before="sys.exit('no GPU was found\\x1b[31m')")
    said = judge("some/model")
    assert said.code != 0 and "code 1" in said.err and "GPU" in said.err and "\x1b" not in said.err
    assert len(programs.started) == 1


def test_a_server_that_is_never_ready_is_ended(programs: Programs) -> None:
    programs.add("vllm", before="import time; time.sleep(60)")
    begun = time.monotonic()
    with pytest.raises(EvaluatorError), LocalServer("some/model", ready=1.0):
        pass
    assert time.monotonic() - begun < 20
    assert programs.started and not programs.alive()


def test_a_server_is_ended_when_judging_fails(programs: Programs) -> None:
    programs.add("vllm")
    with pytest.raises(RuntimeError), LocalServer("some/model") as server:
        assert server.base_url.startswith("http://127.0.0.1:")
        assert programs.alive()
        raise RuntimeError
    assert not programs.alive()


def test_what_is_missing_is_named(programs: Programs, tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(b"GGUF")
    for model, name in (("some/model", "vLLM"), (str(tmp_path / "m.gguf"), "llama.cpp")):
        lacks = lacking(model)
        assert lacks is not None and name in lacks.why
    with pytest.raises(EvaluatorError) as caught:
        command("nowhere.gguf", 1)
    assert "nowhere.gguf" in str(caught.value)
    programs.add("vllm")
    assert lacking("some/model") is None
    assert served_name("some/model") == "some/model" and served_name(str(tmp_path)) == tmp_path.name
