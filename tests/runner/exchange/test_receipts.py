"""Receipts: what was signed holds, and nothing else does."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

import schemas
from runner.exchange.receipts import KEY_TEXT, Signer, examine, publish_key, published_key, receipt
from tests.worlds.mini import Project, Said, call_here

COMMON = {
    "request": "a" * 32,
    "kind": "run-file",
    "team": "alpha",
    "task": "mini",
    "sha256": "b" * 64,
    "size": 7,
}
ARRIVAL = {
    **COMMON,
    "server": "https://task.example.org",
    "began": "2031-05-01T11:59:58Z",
    "arrived": "2031-05-01T12:00:03Z",
}
DECISION = {
    **COMMON,
    "said": "2031-05-01T12:00:03Z",
    "arrival": "2031-05-01T12:00:03Z",
    "decided": "2031-05-01T12:00:09Z",
    "accepted": True,
    "submission": "alpha.one.1a2b3c4d",
    "runs": ["alpha.one.1a2b3c4d.dev"],
}


@pytest.fixture
def signers(tmp_path: Path) -> tuple[Signer, Signer]:
    return Signer.load(tmp_path / "front/receipts.key"), Signer.load(tmp_path / "work/receipts.key")


@pytest.fixture
def whole(signers: tuple[Signer, Signer]) -> dict[str, Any]:
    return receipt(signers[0].sign("arrival", ARRIVAL), signers[1].sign("decision", DECISION))


def subjects(problems: list[str]) -> list[set[str]]:
    """Return what each problem is about."""
    known = {"arrival", "decision", "signature", "key", "request"}
    return [known & {*re.findall("[a-z]+", one)} for one in problems]


OF_ARRIVAL = {"signature", "arrival"}


def test_a_key_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "state/receipts.key"
    keys = {Signer.load(path).public for _ in range(3)}
    assert len(keys) == 1 and KEY_TEXT.fullmatch(*keys) and path.stat().st_mode & 0o777 == 0o600
    assert [one.name for one in path.parent.iterdir()] == ["receipts.key"]
    path.chmod(0o640)
    with pytest.raises(PermissionError):
        Signer.load(path)


def test_what_was_signed_holds_whole_and_in_parts(
    signers: tuple[Signer, Signer], whole: dict[str, Any]
) -> None:
    keys = [one.public for one in signers]
    assert not schemas.validate(whole, "receipt")
    assert examine(whole) == examine(whole, keys) == examine(json.loads(json.dumps(whole, indent=3))) == []
    assert examine(receipt(whole["arrival"], None), keys) == examine(receipt(None, whole["decision"])) == []
    assert subjects(examine(whole, keys[:1])) == [{"key", "decision"}]
    assert subjects(examine(receipt(None, None))) == [{"arrival", "decision"}]


FIELDS = [("arrival", name) for name in ARRIVAL] + [("decision", name) for name in DECISION]


@pytest.mark.parametrize("where", FIELDS, ids=".".join)
def test_every_changed_field_is_seen(whole: dict[str, Any], where: tuple[str, str]) -> None:
    what, name = where
    forged = deepcopy(whole)
    old = forged[what]["statement"][name]
    new: Any = {str: "x", int: 8, bool: False, list: ["y"]}[type(old)]
    forged[what]["statement"][name] = old.replace("1", "2") if isinstance(old, str) and "1" in old else new
    assert {"signature", what} in subjects(examine(forged))


def test_neither_half_stands_for_the_other(signers: tuple[Signer, Signer], whole: dict[str, Any]) -> None:
    front, work = signers
    other = receipt(front.sign("arrival", {**ARRIVAL, "request": "c" * 32}), whole["decision"])
    assert subjects(examine(other)) == [{"arrival", "decision", "request"}]
    swapped = receipt(front.sign("decision", ARRIVAL), whole["decision"])
    assert OF_ARRIVAL in subjects(examine(swapped)), "a signature is for one kind of statement"
    foreign = receipt({**whole["arrival"], "key": work.public}, whole["decision"])
    assert OF_ARRIVAL in subjects(examine(foreign))


@pytest.mark.parametrize("text", [None, 7, [], {}, {"schema_version": 1, "arrival": {}, "decision": None}])
def test_what_is_no_receipt_is_said_so(text: Any) -> None:
    assert examine(text) and all("no receipt" in one for one in examine(text))


def test_signatures_of_any_form_are_no_traceback(whole: dict[str, Any]) -> None:
    for bad in ("", "?", "AAAA", "\u00e9", whole["decision"]["signature"]):
        forged = deepcopy(whole)
        forged["arrival"]["signature"] = bad
        assert OF_ARRIVAL in subjects(examine(forged))
    forged["arrival"]["key"] = "ed25519:" + "A" * 43 + "="
    assert examine(forged)


def test_the_key_of_work_is_published(tmp_path: Path, signers: tuple[Signer, Signer]) -> None:
    (tmp_path / "published").mkdir()
    assert published_key(tmp_path / "published") is None
    publish_key(tmp_path / "published", signers[1])
    assert published_key(tmp_path / "published") == signers[1].public


def test_the_command_verifies_a_receipt(
    project: Project,
    tmp_path: Path,
    signers: tuple[Signer, Signer],
    whole: dict[str, Any],
    capsys: pytest.CaptureFixture[str],
    golden: Callable[[str, str], None],
) -> None:
    file, keys = tmp_path / "receipt.json", tmp_path / "keys.json"
    file.write_text(json.dumps(whole))
    keys.write_text(json.dumps({"front": signers[0].public, "work": signers[1].public}))

    def verify(*words: str, path: Path = file) -> Said:
        return call_here(project, ["receipt", "verify", str(path), *words], capsys)

    unnamed, named = verify(), verify("--key", str(keys))
    assert max(map(len, unnamed.out.splitlines())) <= 100
    golden("receipt.txt", re.sub("ed25519:[^ ]+", "ed25519:KEY", f"{unnamed.out}\n{named.out}"))
    assert verify("--key", str(keys), "--json").json["good"] is True
    other = verify("--key", signers[0].public)
    assert other.code == 1 and {"key", "decision"} in subjects(other.err.splitlines())
    whole["decision"]["statement"]["accepted"] = False
    file.write_text(json.dumps(whole))
    changed = verify()
    assert changed.code == 1 and any({"signature", "decision"} <= one for one in subjects([changed.err]))
    file.write_text("\x1b[31m{")
    for said, code, error in (
        (other, 1, "E220"),
        (verify(), 1, "E220"),
        (verify(path=tmp_path / "no"), 2, "E102"),
    ):
        assert said.code == code and error in said.err
