"""A front in the attacker's hands: it does its worst with the inbox, and reads all that it can.

A program of its own, which needs nothing but Python: ``hostile_front.py EXCHANGE FACTS``. FACTS is JSON: ``closed`` (files and
folders of work), ``grant`` (of a team that signed in here: account, token, team, key), ``others`` (account and token of
another team), ``seen`` (requests that were decided before, whole). It prints what it could read and write of ``closed``.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import secrets
import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

WHEN = "2026-05-01T12:00:00Z"
RUN = b"this is no run\n"


class Hostile:
    """What it knows, and a counter of requests."""

    def __init__(self, exchange: Path, facts: dict[str, Any]) -> None:
        self.inbox, self.published, self.facts = exchange / "inbox", exchange / "published", facts
        self.number = 0

    def fields(self, **changes: Any) -> dict[str, Any]:
        """A request that would be good, with changes; it is not signed."""
        grant = self.facts["grant"]
        data = {"task": "mini", "software": "evil", "dataset": "nowhere", "file": "run.txt"}
        return {
            "schema_version": 1, "id": secrets.token_hex(16), "kind": "run-file", "account": grant["account"],
            "token": grant["token"], "team": grant["team"], "arrival": WHEN, "data": data,
            "sha256": hashlib.sha256(RUN).hexdigest(), "size": len(RUN), "proof": "0" * 64,
        } | changes  # fmt: skip

    def signed(self, fields: dict[str, Any]) -> dict[str, Any]:
        """It with the proof of the team that signed in."""
        known = {name: value for name, value in fields.items() if name not in ("proof", "schema_version")}
        text = json.dumps(known, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        proof = hmac.new(self.facts["grant"]["key"].encode(), text.encode("utf-8", "surrogatepass"), "sha256")
        return fields | {"proof": proof.hexdigest()}

    def folder(self, id: str | None = None, number: int | None = None) -> Path:
        """A new folder with the name of a request."""
        self.number += 1
        path = self.inbox / f"{number or self.number:010}-{id or secrets.token_hex(16)}"
        path.mkdir()
        return path

    def put(self, fields: Any, payload: bytes | None = RUN, *, raw: bytes | None = None) -> Path:
        """A request as it is given."""
        id = fields.get("id") if isinstance(fields, dict) else None
        path = self.folder(id if isinstance(id, str) and len(id) == 32 else None)
        text = json.dumps(fields).encode() if raw is None else raw
        with contextlib.suppress(FileNotFoundError):  # work has found it before it was whole
            if payload is not None:
                (path / "payload").write_bytes(payload)
            (path / "request.json").write_bytes(text)
        return path

    def words(self) -> None:
        """Requests that are no JSON, none of ours, or none that can be signed, written or dated."""
        for raw in (
            b"",
            b"\xff\xfe",
            b"[" * 60_000,
            b'{"a":' * 10_000,
            b"1" * 60_000,
            b"NaN",
            b"null",
            b"{}",
        ):
            self.put(None, raw=raw)
        wrong: list[dict[str, Any]] = [
            {"arrival": "9999-99-99T99:99:99Z"}, {"arrival": "0000-01-01T00:00:00Z"}, {"arrival": f"{WHEN}\n"},
            {"size": 1.0, "sha256": "0" * 64}, {"size": 1e300}, {"size": 10**400}, {"size": -1}, {"size": True},
            {"kind": "../../x"}, {"kind": ["run-file"]}, {"team": {"a": 1}}, {"account": f"{'a-' + '0' * 16}\n"},
            {"data": {"a": float("nan")}}, {"data": {"a": float("inf")}}, {"data": {"\ud800": "\udfff"}},
            {"data": {"a": 10**4000}}, {"data": {str(n): n for n in range(6000)}}, {"id": "\x1b[2J" + "0" * 28},
            {"more": "\x1b]0;evil\x07" * 50}, {"\x1b[31mred": 1},
        ]  # fmt: skip
        for changes in wrong:
            self.put(self.fields(**changes))
            with contextlib.suppress(ValueError, TypeError):
                self.put(self.signed(self.fields(**changes)))
        for depth in (*range(100, 1000, 25), *range(960, 1000)):
            nested = b'{"a":' * depth + b"1" + b"}" * depth
            text = json.dumps(self.fields(data=7)).encode().replace(b'"data": 7', b'"data": ' + nested)
            self.put({"id": json.loads(text.replace(nested, b"7"))["id"]}, raw=text)
        for data in (
            {"software": "../../x"},
            {"file": "../../../etc/passwd"},
            {"task": "../mini"},
            {"dataset": "test\0"},
        ):
            fields = self.fields()
            self.put(self.signed(fields | {"data": fields["data"] | data}))

    def rights(self) -> None:
        """Requests in the name of others, with proofs that it has or makes up, and those that were decided before."""
        other = self.facts["others"]
        self.put(self.fields(**other, team="alpha"))
        self.put(self.signed(self.fields(**other, team="alpha")))
        self.put(self.signed(self.fields(team="alpha")))
        self.put(self.signed(self.fields(team=None)))
        verifiers = json.loads((self.published / "access.json").read_text())["grants"]
        for one in verifiers:
            known = self.fields(account=one["account"], token=one["token"], team=one["team"])
            unsigned = {k: v for k, v in known.items() if k not in ("proof", "schema_version")}
            text = json.dumps(unsigned, sort_keys=True, separators=(",", ":"))
            for key in (one["verifier"], one["token"], ""):
                proof = hmac.new(key.encode(), text.encode(), "sha256").hexdigest()
                self.put(known | {"proof": proof})
        for request, payload in self.facts["seen"]:
            for number in (1, 5, 9_999_999_999):
                path = self.inbox / f"{number:010}-{request['id']}"
                path.mkdir(exist_ok=True)
                with contextlib.suppress(FileNotFoundError):  # work has found it
                    (path / "payload").write_text(payload)
                    (path / "request.json").write_text(json.dumps(request))
            changed = request | {"id": secrets.token_hex(16)}
            self.put(changed, payload.encode())
            self.put(changed | {"arrival": "2019-01-01T00:00:00Z"}, payload.encode())

    def files(self) -> None:
        """Things that are no files, or lead to files of others, in every place."""
        targets = [Path(one) for one in self.facts["closed"]]
        for name in ("request.json", "payload"):
            for target in (*targets, Path("/dev/zero"), Path("/proc/self/mem"), Path("/")):
                path = self.put(self.signed(self.fields(size=1 << 28)))
                with contextlib.suppress(FileNotFoundError):
                    (path / name).unlink()
                    (path / name).symlink_to(target)
            for make in (os.mkfifo, os.mkdir, _socket, _hard_link, _locked):
                path = self.put(self.signed(self.fields()))
                with contextlib.suppress(OSError):
                    (path / name).unlink()
                    make(path / name)
            path = self.put(self.signed(self.fields(size=500 << 20)))
            with contextlib.suppress(FileNotFoundError):
                os.truncate(path / name, 500 << 20)  # holes
        for target in targets:
            with contextlib.suppress(OSError):
                (self.inbox / f"{77:010}-{secrets.token_hex(16)}").symlink_to(target)
        os.mkfifo(self.inbox / f"{78:010}-{secrets.token_hex(16)}")
        deep = self.folder()
        here = os.open(deep, os.O_RDONLY)
        with contextlib.suppress(FileNotFoundError):
            for _ in range(3000):
                os.mkdir("d", dir_fd=here)
                below = os.open("d", os.O_RDONLY, dir_fd=here)
                os.close(here)
                here = below
        os.close(here)
        for mode in (0o000, 0o400, 0o111):
            path = self.put(self.signed(self.fields()))
            with contextlib.suppress(FileNotFoundError):
                path.chmod(mode)
        with contextlib.suppress(FileNotFoundError):
            (self.folder() / "request.json").symlink_to("request.json")

    def crowd(self) -> None:
        """More names than anybody wants to look at, and folders with many files."""
        for number in range(1_500):
            (self.inbox / f"{5_000_000_000 + number:010}-{secrets.token_hex(16)}").mkdir()
        full = self.folder()
        for number in range(500):
            with contextlib.suppress(FileNotFoundError):  # work has found it
                (full / str(number)).touch()

    def changing(self, stop: threading.Event) -> None:
        """Payloads that are other files at every moment."""
        fields = self.signed(self.fields())
        path = self.put(fields)
        while not stop.is_set():
            with contextlib.suppress(OSError):
                (path / "payload").write_bytes(RUN)
                os.replace(path / "payload", path / "x")
                (path / "payload").symlink_to(self.facts["closed"][0])
                os.replace(path / "x", path / "payload")
                path.mkdir()

    def had(self) -> Iterator[str]:
        """What is open of what should be closed."""
        for name in self.facts["closed"]:
            for how in (os.O_RDONLY, os.O_WRONLY):
                with contextlib.suppress(OSError):
                    os.close(os.open(name, how))
                    yield f"{name} opened with {how}"
        for path in (self.published, self.published / "answers", self.published / "audiences"):
            with contextlib.suppress(OSError):
                (path / "evil").touch()
                yield f"{path} written"


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        os.chdir(path.parent)
        made.bind(path.name)


def _hard_link(path: Path) -> None:
    os.link(path.parent / ("payload" if path.name == "request.json" else "request.json"), path)


def _locked(path: Path) -> None:
    path.write_bytes(b"x")
    path.chmod(0)


def main() -> None:
    """Do all of it."""
    front = Hostile(Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text()))
    stop = threading.Event()
    changing = threading.Thread(target=front.changing, args=(stop,), daemon=True)  # ends with what fails
    changing.start()
    front.words()
    front.rights()
    front.files()
    front.crowd()
    time.sleep(0.5)
    stop.set()
    changing.join()
    print(json.dumps(list(front.had())))


if __name__ == "__main__":
    main()
