"""Who may share a network with whom: the same on every engine.

A container has no network. It may share the loopback of one other container (``join``), and only a gateway may
be given a network of the engine. These checks are about our own mistakes, so they raise ValueError.
"""

from __future__ import annotations

import re

from runner.engines.base import ContainerSpec, Handle

NETWORK = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")
JOINERS = ("software", "sidecar")
SIDECARS = ("sidecar", "gateway")  # those that run under the session's second user id


class Sharing:
    """Which containers of one session have joined which."""

    def __init__(self) -> None:
        self._taken: set[int] = set()  # handles that somebody has joined
        self._guests: set[int] = set()  # handles that have joined somebody
        self._known: dict[int, tuple[Handle, str]] = {}  # holds the handles, so that no number comes twice

    def check(self, spec: ContainerSpec) -> None:
        """Raise ValueError when ``spec`` would share a network with a container that may not.

        One guest a container, and no guest of a guest: software that joins its relay finds the relay there
        and nobody else, ever.
        """
        if spec.network is not None and (spec.role != "gateway" or not NETWORK.fullmatch(spec.network)):
            raise ValueError(f"a {spec.role} cannot be given the network {spec.network!r}")
        if spec.join is None:
            return
        if spec.role not in JOINERS:
            raise ValueError(f"a {spec.role} shares its network with nobody")
        host = id(spec.join)
        if self._known.get(host, (None, ""))[1] != "sidecar":
            raise ValueError("only a sidecar of the same session can be joined")
        if host in self._taken or host in self._guests:
            raise ValueError("a container is joined once, and never when it has joined another")

    def add(self, spec: ContainerSpec, handle: Handle) -> None:
        """Remember a container that is about to run."""
        self._known[id(handle)] = (handle, spec.role)
        if spec.join is not None:
            self._taken.add(id(spec.join))
            self._guests.add(id(handle))
