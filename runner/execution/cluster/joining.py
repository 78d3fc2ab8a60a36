"""Which hosts are given work: what a machine says of itself is compared with what the coordinator needs, and believed no further."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import schemas
from runner.execution.cluster.host import PROTOCOL
from runner.execution.cluster.roles import Role
from runner.execution.cluster.storage.stores import Stores
from runner.execution.executors.base import Host
from runner.execution.hardware import runner_version


@dataclass(frozen=True)
class Wanted:
    """What a coordinator needs of the hosts of a cluster: what they are for, with which sandbox, and by which stores."""

    role: Role
    sandbox: str
    stores: Stores


def host_of(address: str, said: Any, wanted: Wanted) -> Host:
    """A host that said of itself what :func:`unfit` found fit."""
    facts = shown(said)
    cpus, steps = float(facts["cpus"]), facts.get("steps") or int(facts["cpus"]) or 1
    label = schemas.show(str(said.get("name")), 100)
    host = Host(
        address, float(facts["memory"]) * 0.9, cpus, max(1, int(steps)), label=label, role=wanted.role
    )
    host.gpus, host.granted = int(facts.get("gpus", 0)), facts.get("granted") is True
    host.hidden = wanted.stores.blinded is None or said.get("blinded") is not None
    host.labels, host.images = _texts(said.get("labels")), _texts(said.get("images"))
    return host


def _texts(said: object) -> frozenset[str]:
    return frozenset(filter(_is_text, said[:100])) if isinstance(said, list) else frozenset()


def named(there: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Of what hosts say of themselves, by address: the one that has the address ``name``, whatever others are called; otherwise those called so."""
    if name in there:
        return {name: there[name]}
    return {
        address: said
        for address, said in there.items()
        if isinstance(said, dict) and said.get("name") == name
    }


def shown(said: object) -> dict[str, Any]:
    """What is shown of what a host says of itself: what we know of, as far as it has the form that it should have."""
    found = said if isinstance(said, dict) else {}
    return {name: found[name] for name, fits in _SHOWN.items() if name in found and fits(found[name])}


def _is_text(said: object) -> bool:
    return isinstance(said, str) and len(said) <= 1000


def _is_amount(said: object) -> bool:
    return isinstance(said, int | float) and not isinstance(said, bool) and 0 <= said <= 1e18


def _is_list(said: object) -> bool:
    return isinstance(said, list) and len(said) <= 10_000 and all(map(_is_text, said))


def _or_none(fits: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda said: said is None or fits(said)


_SHOWN: Mapping[str, Callable[[object], bool]] = {
    **dict.fromkeys(("version", "name", "sandbox", "platform", "role", "artefacts", "full"), _is_text),
    **dict.fromkeys(("protocol", "cpus", "memory", "gpus", "cached", "room"), _is_amount),
    **dict.fromkeys(("labels", "images", "at_work"), _is_list),
    "blinded": _or_none(_is_text),
    "steps": _or_none(_is_amount),
    "granted": lambda said: isinstance(said, bool),
}


def unfit(said: Any, wanted: Wanted) -> str:
    """Why a host cannot be given work; empty where it can."""
    if not isinstance(said, dict):
        return "it does not say what it is"
    if isinstance(error := said.get("error"), dict):
        return schemas.show(f"{error.get('what')}. {error.get('why')}", 300)
    ours: dict[str, Any] = {"protocol": PROTOCOL, "version": runner_version(), "role": wanted.role}
    for key, value in {**ours, **wanted.stores.places()}.items():
        # A host without the store for hidden data is given none.
        if said.get(key) != value and (key != "blinded" or said.get(key) is not None):
            return f"its {key} is {schemas.show(str(said.get(key)), 100)}, ours {value}"
    if said.get("granted") is True and not all(store.signs for store in wanted.stores.all()):
        return "it has no credentials of stores, and what is no S3 cannot grant anything"
    if said.get("sandbox") != wanted.sandbox:
        return "its engine has another sandbox than this machine's"
    facts = shown(said)
    if not (0 < facts.get("cpus", 0) <= 1e5 and 0 < facts.get("memory", 0) <= 1e16):
        return "it does not say how large it is"
    steps = said.get("steps")
    if steps is not None and not (isinstance(facts.get("steps"), int) and 0 < steps <= 1e5):
        return "it does not say how many steps it takes"
    return ""
