"""Receipts: what was signed holds, and nothing else does."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

import schemas
from runner.exchange.receipts import KEY_TEXT, Signer, examine, publish_key, published_key, receipt
from tests.worlds.mini import Project, call

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


def test_a_key_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "state/receipts.key"
    keys = {Signer.load(path).public for _ in range(3)}
    assert len(keys) == 1 and KEY_TEXT.fullmatch(*keys) and path.stat().st_mode & 0o777 == 0o600
    assert [one.name for one in path.parent.iterdir()] == ["receipts.key"]
    path.chmod(0o640)
    with pytest.raises(PermissionError, match="others"):
        Signer.load(path)


def test_what_was_signed_holds_whole_and_in_parts(
    signers: tuple[Signer, Signer], whole: dict[str, Any]
) -> None:
    keys = [one.public for one in signers]
    assert not schemas.validate(whole, "receipt")
    assert examine(whole) == examine(whole, keys) == examine(json.loads(json.dumps(whole, indent=3))) == []
    assert examine(receipt(whole["arrival"], None), keys) == examine(receipt(None, whole["decision"])) == []
    assert examine(whole, keys[:1]) == ["the key of the decision is none of those that were named"]
    assert examine(receipt(None, None)) == ["it holds neither an arrival nor a decision"]


def changes() -> list[tuple[str, ...]]:
    return [("arrival", name) for name in ARRIVAL] + [("decision", name) for name in DECISION]


@pytest.mark.parametrize("where", changes(), ids=".".join)
def test_every_changed_field_is_seen(whole: dict[str, Any], where: tuple[str, str]) -> None:
    what, name = where
    forged = deepcopy(whole)
    old = forged[what]["statement"][name]
    new: Any = {str: "x", int: 8, bool: False, list: ["y"]}[type(old)]
    forged[what]["statement"][name] = old.replace("1", "2") if isinstance(old, str) and "1" in old else new
    assert f"the signature of the {what} does not fit" in " ".join(examine(forged))


def test_neither_half_stands_for_the_other(signers: tuple[Signer, Signer], whole: dict[str, Any]) -> None:
    front, work = signers
    other = receipt(front.sign("arrival", {**ARRIVAL, "request": "c" * 32}), whole["decision"])
    assert examine(other) == ["arrival and decision are of two requests: request differs"]
    swapped = receipt(front.sign("decision", ARRIVAL), whole["decision"])
    assert "signature of the arrival" in " ".join(examine(swapped)), (
        "a signature is for one kind of statement"
    )
    foreign = receipt({**whole["arrival"], "key": work.public}, whole["decision"])
    assert "signature of the arrival" in " ".join(examine(foreign))


@pytest.mark.parametrize("text", [None, 7, [], {}, {"schema_version": 1, "arrival": {}, "decision": None}])
def test_what_is_no_receipt_is_said_so(text: Any) -> None:
    assert examine(text) and all("no receipt" in one for one in examine(text))


def test_signatures_of_any_form_are_no_traceback(whole: dict[str, Any]) -> None:
    for bad in ("", "?", "AAAA", "\u00e9", whole["decision"]["signature"]):
        forged = deepcopy(whole)
        forged["arrival"]["signature"] = bad
        assert "signature of the arrival" in " ".join(examine(forged))
    forged["arrival"]["key"] = "ed25519:" + "A" * 43 + "="
    assert examine(forged)


def test_the_key_of_work_is_published(tmp_path: Path, signers: tuple[Signer, Signer]) -> None:
    (tmp_path / "published").mkdir()
    assert published_key(tmp_path / "published") is None
    publish_key(tmp_path / "published", signers[1])
    assert published_key(tmp_path / "published") == signers[1].public


def test_the_command_says_what_holds_and_what_does_not(
    project: Project, tmp_path: Path, signers: tuple[Signer, Signer], whole: dict[str, Any]
) -> None:
    file, keys = tmp_path / "receipt.json", tmp_path / "keys.json"
    file.write_text(json.dumps(whole))
    keys.write_text(json.dumps({"front": signers[0].public, "work": signers[1].public}))
    said = call(project, "receipt", "verify", str(file))
    assert "taken" in said.out and "12:00:03Z" in said.out and "name them with --key" in said.out
    assert max(map(len, said.out.splitlines())) <= 100
    said = call(project, "receipt", "verify", str(file), "--key", str(keys))
    assert "not compared" not in said.out
    assert call(project, "receipt", "verify", str(file), "--key", str(keys), "--json").json["good"] is True
    said = call(project, "receipt", "verify", str(file), "--key", signers[0].public, expect=1)
    assert "E220" in said.err and "key of the decision" in said.err
    whole["decision"]["statement"]["accepted"] = False
    file.write_text(json.dumps(whole))
    assert "was changed" in call(project, "receipt", "verify", str(file), expect=1).err
    file.write_text("\x1b[31m{")
    assert "E220" in call(project, "receipt", "verify", str(file), expect=1).err
    assert "E102" in call(project, "receipt", "verify", str(tmp_path / "nowhere"), expect=2).err
