"""Receipts as people give and read them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import schemas
from runner.exchange.receipts import KEY_TEXT
from runner.model.errors import RunnerError, no_such

MOST = 1024 * 1024  # bytes of a file


def read(file: Path) -> Any:
    """The JSON data in a file. Raises E102 when there is no such file, E220 for what is no JSON."""
    if not file.is_file():
        raise no_such("file", file, fix="name a receipt", limit=1000)
    try:
        if file.stat().st_size > MOST:
            raise ValueError("it is too large")
        return json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        what = f"{schemas.show(str(file), 200)} holds no JSON"
        raise RunnerError(
            "E220", what, why=f"{error}.", fix="take it again from the request's page"
        ) from error


def keys_of(given: Collection[str]) -> list[str]:
    """The public keys that ``--key`` names: keys as they are, and those in files as a server has them at ``/keys``. Raises E101, E102."""
    found: list[str] = []
    for one in given:
        if KEY_TEXT.fullmatch(one):
            found.append(one)
            continue
        data = read(Path(one))
        named = [data.get(who) for who in ("front", "work")] if isinstance(data, dict) else []
        keys = [key for key in named if isinstance(key, str) and KEY_TEXT.fullmatch(key)]
        if not keys:
            raise RunnerError(
                "E101", f"{schemas.show(one, 200)} holds no keys", fix="take it from the server: URL/keys"
            )
        found += keys
    return found


def lines(data: Mapping[str, Any], *, keys_checked: bool) -> Iterator[str]:
    """What a receipt that holds says, for people."""
    arrival, decision = data["arrival"], data["decision"]
    one = (arrival or decision)["statement"]
    yield f"request  {one['request']} of {show(one['team'])} for {show(one['task'])}"
    yield f"sent     {one['size']:,} bytes, SHA-256 {show(one['sha256'])}"
    if arrival is not None:
        said = arrival["statement"]
        yield f"arrived  {said['arrived']} at {show(said['server'])}; begun {said['began']}"
    if decision is not None:
        said = decision["statement"]
        differs = "" if said["said"] == said["arrival"] else f"; the front said {said['said']}"
        yield f"counts   as of {said['arrival']}{differs}"
        code = f" ({show(said['code'])})" if said.get("code") else ""
        yield f"decided  {said['decided']}: {'taken' if said['accepted'] else 'refused'}{code}"
        if said.get("submission"):
            yield f"         {show(said['submission'])}"
    else:
        yield "decided  not when this was made: take the receipt again later"
    yield "good     both signatures hold" if arrival and decision else "good     the signature holds"
    if not keys_checked:
        yield "keys     not compared with the server's: name them with --key"


def show(value: object) -> str:
    """A value of a receipt, safe for a terminal."""
    return "nothing" if value is None else schemas.show(str(value), 200)
