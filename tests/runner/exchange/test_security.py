"""The security log: a line is a line whatever strangers send, and its sizes are bounded."""

from __future__ import annotations

import json
import threading
from pathlib import Path

from runner.exchange.security import KEPT, SecurityLog


def test_what_strangers_send_makes_no_line_and_moves_no_terminal(tmp_path: Path) -> None:
    evil = 'x\n{"what": "signed in"}\r\x1b[2J\x7f\x85\u2028\u202e' + "a" * 10_000
    SecurityLog(tmp_path).note("refused", address=evil, token=None)
    [line] = (tmp_path / "security.jsonl").read_bytes().split(b"\n")[:-1]
    assert all(32 <= byte < 127 for byte in line) and len(line) < 1000
    assert json.loads(line)["address"].startswith("x\n") and "token" not in json.loads(line)
    assert (tmp_path / "security.jsonl").stat().st_mode & 0o077 == 0


def test_its_files_are_bounded_in_size_and_number_while_several_write(tmp_path: Path) -> None:
    logs = [SecurityLog(tmp_path, most=2000) for _ in range(3)]
    threads = [
        threading.Thread(target=lambda log=log: [log.note("x", n=str(n)) for n in range(200)]) for log in logs
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    files = sorted(tmp_path.glob("security.jsonl*"))
    files = [path for path in files if path.suffix != ".lock"]
    assert len(files) == KEPT + 1 and all(path.stat().st_size <= 2000 for path in files)
    assert all(json.loads(line)["what"] == "x" for path in files for line in path.read_text().splitlines())


def test_a_disk_that_refuses_it_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    SecurityLog(tmp_path / "file").note("x")
    (tmp_path / "security.jsonl").symlink_to(tmp_path / "elsewhere")
    SecurityLog(tmp_path).note("x")
    assert not (tmp_path / "elsewhere").exists()
