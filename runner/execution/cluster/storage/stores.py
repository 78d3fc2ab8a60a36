"""Which artefact store holds what: hidden data can have one with credentials of its own.

What concerns runs on blinded data (their inputs, orders and outputs) goes to ``blinded`` where there is such a store, all else to
``open``. Truths are in neither: the cluster that evaluates has a store of its own, which is its ``open`` one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runner.execution.cluster.storage.artefacts import Artefacts
from runner.execution.cluster.storage.grants import Granted, Store, origin
from runner.model.config import without_secrets
from runner.model.errors import RunnerError
from runner.model.task import Visibility


@dataclass(frozen=True)
class Stores:
    """The stores of one cluster."""

    open: Artefacts
    blinded: Artefacts | None = None

    def of(self, visibility: Visibility) -> Artefacts:
        """The store for runs on data of that visibility."""
        return self.open if visibility == "public" else self.blinded or self.open

    def all(self) -> Sequence[Artefacts]:
        """Every one of them."""
        return (self.open,) if self.blinded is None else (self.open, self.blinded)

    def places(self) -> dict[str, Any]:
        """See :func:`places_of`."""
        return places_of(self.open, self.blinded)


def places_of(open_: Store, blinded: Store | None) -> dict[str, Any]:
    """Where stores are, by what they are for, without what is secret in it."""
    return {"artefacts": open_.place, "blinded": blinded.place if blinded else None}


def store_at(address: str, credentials: Path | None) -> Artefacts:
    """The store at an address, opened by what stands for it in the file ``credentials``: a JSON object of addresses, each with the options
    that fsspec gives to the file system (keys and the like). Without one, by what fsspec finds by itself.

    Raises E101 where the file is none or others may read it, E313 where the address is none.
    """
    return Artefacts(address, _options(address, credentials) if credentials else {})


def store_of_host(address: str, credentials: Path | None, origins: Sequence[str]) -> Store:
    """The store at an address as a host has it: by what is granted to it where ``origins`` are named, else as :func:`store_at`.

    Raises E101 for what is no origin, or where there are credentials, too; otherwise as :func:`store_at`.
    """
    if not origins:
        return store_at(address, credentials)
    if credentials is not None or without_secrets(address) != address:
        what, why = (
            "this host is to work by grants and has credentials of stores",
            "One of them is not meant.",
        )
        raise RunnerError("E101", what, why=why, fix="leave out --store-credentials, or --store-origin")
    return Granted(address, [origin(one) for one in origins])


def _options(address: str, file: Path) -> dict[str, Any]:
    name = f"the file of store credentials {file}"
    try:
        if file.stat().st_mode & 0o077:
            raise RunnerError("E101", f"{name} may be read by others", fix=f"chmod 600 {file}")
        said = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        why = f"{type(error).__name__}."  # no more: it holds secrets
        fix = 'write a JSON object: {"s3://name": {"key": "…", "secret": "…"}}'
        raise RunnerError("E101", f"{name} cannot be read", why=why, fix=fix) from None
    if not isinstance(said, dict) or not all(isinstance(one, dict) for one in said.values()):
        fix = 'write an object of options for each address: {"s3://name": {"key": "…", "secret": "…"}}'
        raise RunnerError("E101", f"{name} is no object of objects", fix=fix)
    wanted = without_secrets(address).rstrip("/")
    return next((dict(one) for place, one in said.items() if place.rstrip("/") == wanted), {})
