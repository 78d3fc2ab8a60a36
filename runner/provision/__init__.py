"""From a bare machine to one that can run: Python packages, the container engine, the base image, our images.

``run`` is what ``runner setup`` does; every part can be called again at no cost when its work is done. The sidecars' image
and the packages for tests, linters and judges are left for when they are needed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runner.model.config import Config
    from runner.model.container import ImageRef

ABOUT = "up to 300 MB to download, 1.5 GB on disk, one to five minutes"  # of all that can be missing


def run(
    config: Config, say: Callable[[str], None], *, everything: bool = False, front: bool = False
) -> dict[str, ImageRef]:
    """Make this machine ready.

    Args:
        config: where things are.
        say: gets a line when a step begins and ends, and every few seconds while it lasts.
        everything: also what is otherwise left for later.
        front: also the image of the front, for a server.

    Returns:
        Our images by name.

    Raises:
        RunnerError: E301 (no engine, with what to do), E302 (engine unsuitable), E203 (an image could not be built), E303.
    """
    from runner.provision.packages import Packages
    from runner.provision.steps import Steps

    steps, packages = Steps.of(say), Packages(everything)
    if packages.missing:
        steps(f"Setting up this machine: {ABOUT}.")
    packages.install(steps)
    # From here on what was just installed is imported.
    from runner.provision import compose
    from runner.provision.base import base_image
    from runner.provision.engine import ensure_engine, open_engine
    from runner.provision.images import FRONT, IMAGES, ensure_images, tag, usual

    ensure_engine(config, steps)
    engine = open_engine(config)
    engine.require()
    wanted = [*(IMAGES if everything else usual(engine)), *([FRONT] if front else [])]
    images = ensure_images(engine, config, steps, wanted)
    compose.write(
        config.root, base_image(config, engine, steps), {i.name: tag(i) for i in IMAGES if i.name in images}
    )
    return images
