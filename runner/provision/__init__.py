"""From a bare machine to one that can run: the container engine, the base image, our images.

``run`` is what ``runner setup`` does; every part can be called again at no cost when its work is done.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runner.model.config import Config
    from runner.model.container import ImageRef


def run(config: Config, say: Callable[[str], None]) -> dict[str, ImageRef]:
    """Make this machine ready and return our images by name. ``say`` gets one line a step.

    Raises :class:`runner.model.errors.RunnerError` E301 (no engine, with what to do), E302 (engine unsuitable),
    E203 (an image could not be built).
    """
    from runner.provision.engine import ensure_engine, open_engine
    from runner.provision.images import ensure_images

    ensure_engine(config, say)
    engine = open_engine(config)
    engine.require()
    return ensure_images(engine, config, say)
