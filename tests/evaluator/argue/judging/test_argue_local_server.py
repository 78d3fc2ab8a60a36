"""``huggingface_local``: a server program is started when there is something to ask, and ended with the judging."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import pytest

from evaluator.__main__ import main
from evaluator.errors import EvaluatorError
from evaluator.judges.local_server import LocalServer, command, lacking, served_name
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
        path.write_text(
            PROGRAM.format(
                python=sys.executable, note=str(self.note), server=str(SERVER), record=str(self.record), before=before
            )
        )  # fmt: skip
        path.chmod(0o755)

    @property
    def started(self) -> list[dict[str, object]]:
        return rows(self.note) if self.note.exists() else []

    def alive(self) -> bool:
        """Whether one of them still runs."""
        return any(Path(f"/proc/{one['pid']}").exists() for one in self.started)


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Programs:
    monkeypatch.chdir(tmp_path)
    for name in [n for n in os.environ if n.endswith("_BASE_URL")]:
        monkeypatch.delenv(name)
    return Programs(tmp_path, monkeypatch)


def judge(model: str, *words: str) -> int:
    return main(["argue", str(REPORT), str(NUGGETS), "x", "-p", "huggingface_local", "-m", model, "-C", str(LOOKUP), *words])  # fmt: skip


def test_a_name_is_served_by_vllm(programs: Programs) -> None:
    programs.add("vllm")
    assert judge("some/model") == 0
    [one] = programs.started
    words = one["words"]
    assert isinstance(words, list) and words[:2] == ["serve", "some/model"]
    assert words[words.index("--host") + 1] == "127.0.0.1"
    assert not programs.alive()
    asked = [json.loads(r["body"]) for r in rows(programs.record) if r["target"].endswith("completions")]
    assert len(asked) == 22 and {a["model"] for a in asked} == {"some/model"}
    [judged] = rows(Path("x.judgments.jsonl"))
    assert judged["judge"]["name"] == "huggingface_local"


def test_a_file_is_served_by_llama_cpp_under_its_name(programs: Programs, tmp_path: Path) -> None:
    programs.add("llama-server")
    (tmp_path / "tiny.gguf").write_bytes(b"GGUF")
    assert judge(str(tmp_path / "tiny.gguf")) == 0
    [judged] = rows(Path("x.judgments.jsonl"))
    assert judged["judge"]["model"] == "tiny.gguf"  # not where it lies here
    assert str(tmp_path) not in Path("x.replies.jsonl").read_text()
    assert not programs.alive()


def test_nothing_is_started_where_nothing_has_to_be_asked(
    programs: Programs, capsys: pytest.CaptureFixture[str]
) -> None:
    programs.add("vllm")
    assert judge("some/model", "--dry-run") == 0
    assert judge("some/model", "--max-calls", "1") == 2
    assert programs.started == []
    assert judge("some/model") == 0
    assert judge("some/model", "--rerun") == 0
    assert len(programs.started) == 1
    (programs.folder / "vllm").unlink()
    assert judge("some/model", "--rerun") == 0  # not even a server is needed
    assert judge("some/other") == 2
    said = capsys.readouterr().err
    assert "no server for models on this machine is installed" in said and "pip install vllm" in said
    assert "-p from_env" in said and "-p lexical" in said


def test_a_server_that_ends_at_once(programs: Programs, capsys: pytest.CaptureFixture[str]) -> None:
    programs.add("vllm", before="sys.exit('no GPU was found\\x1b[31m')")
    assert judge("some/model") != 0
    said = capsys.readouterr().err
    assert "ended with code 1" in said and "no GPU was found" in said
    assert "\x1b" not in said
    assert len(programs.started) == 1


def test_a_server_that_is_never_ready_is_ended(programs: Programs) -> None:
    programs.add("vllm", before="import time; time.sleep(60)")
    begun = time.monotonic()
    with pytest.raises(EvaluatorError, match="not ready after"), LocalServer("some/model", ready=1.0):
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
    with pytest.raises(EvaluatorError, match="there is no file"):
        command("nowhere.gguf", 1)
    programs.add("vllm")
    assert lacking("some/model") is None
    assert served_name("some/model") == "some/model" and served_name(str(tmp_path)) == tmp_path.name
