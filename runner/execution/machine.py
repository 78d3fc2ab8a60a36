"""This machine as work uses it: the engine, opened once, and the platform's own images in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property

from runner.engines.base import Engine
from runner.model.config import Config
from runner.model.errors import RunnerError
from runner.model.limits import Limits


class Machine:
    """The engine of a configuration and our images.

    Nothing is asked before it is needed. ``say`` is given what the engine waits for. A test gives an ``engine`` of its
    own, with ``images``: the identities of our images in it by name.
    """

    def __init__(
        self,
        config: Config,
        say: Callable[[str], None] = lambda _: None,
        *,
        engine: Engine | None = None,
        images: Mapping[str, str] | None = None,
    ) -> None:
        self.config = config
        self._say, self._given, self._images = say, engine, images
        self._found: dict[str, str] = {}

    @cached_property
    def _opened(self) -> Engine:
        from runner.provision.engine import open_engine

        return self._given or open_engine(self.config, self._say)

    def engine(self, limits: Iterable[Limits] = ()) -> Engine:
        """The engine, checked to enforce the sandbox and to be large enough. Raises E301, E302, E305."""
        self._opened.require(limits)
        return self._opened

    def own_profile(self) -> bool:
        """Whether locks are made for the platform's own seccomp profile: asked of the engine, if it answers."""
        try:
            return self._opened.info().seccomp
        except RunnerError:
            return True

    def images(self, names: Iterable[str]) -> dict[str, str]:
        """The identities of our images by name; that of the sidecars is made when it is needed for the first time.

        Raises E304 when one is missing or older than its sources.
        """
        from runner.provision.images import first_needed, images

        wanted = list(names)
        if self._images is not None:
            return {name: self._images[name] for name in wanted}
        missing = [name for name in wanted if name not in self._found]
        if missing:
            first_needed(self._opened, self.config, missing, self._say)
            found = images(self._opened, missing)
            self._found.update({name: image.id for name, image in found.items()})
        return {name: self._found[name] for name in wanted}

    def evaluator(self) -> str:
        """The identity of the platform's evaluator image. Raises E304 when it is missing or stale."""
        return self.images(["evaluator"])["evaluator"]

    def sidecars(self, *, needed: bool = False) -> str | None:
        """The identity of the image of the sidecars of interactive software; None when it is missing, stale, or no engine answers.

        Where it is ``needed`` and there has never been one, it is made. Raises E203, E303.
        """
        from runner.provision.images import first_needed, states

        if self._images is not None:
            return self._images.get("sidecars")
        try:
            if needed:
                first_needed(self._opened, self.config, ["sidecars"], self._say)
            found = next((state for state in states(self._opened) if state.name == "sidecars"), None)
        except RunnerError:
            return None
        return None if found is None or found.stale else found.id
