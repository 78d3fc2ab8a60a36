"""From a bare machine to one that can run: Python packages, the container engine, the base image, our images.

``run`` is what ``runner setup`` does; every part can be called again at no cost when its work is done. What waits for
different things is done side by side; what most people need later or never (the sidecars' image, packages for tests,
linters and judges) is left for when it is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runner.engines.base import Engine
    from runner.model.config import Config
    from runner.model.container import ImageRef
    from runner.provision.steps import Steps

ABOUT = "up to 300 MB to download, 1.5 GB on disk, one to four minutes"  # of all that can be missing


def run(
    config: Config, say: Callable[[str], None], *, everything: bool = False, front: bool = False
) -> dict[str, ImageRef]:
    """Make this machine ready.

    Args:
        config: where things are.
        say: gets one line a step, and one whenever nothing was said for a while.
        everything: also what is otherwise left for later.
        front: also the image of the front, for a server.

    Returns:
        Our images by name.

    Raises:
        RunnerError: E301 (no engine, with what to do), E302 (engine unsuitable), E203 (an image could not be built), E303.
    """
    from runner.provision.steps import Steps

    steps = Steps.of(say)
    engine = prepare(config, steps, everything=everything)
    from runner.provision import compose
    from runner.provision.base import base_image
    from runner.provision.images import FRONT, IMAGES, ensure_images, tag, usual

    wanted = [*(IMAGES if everything else usual(engine)), *([FRONT] if front else [])]
    images = ensure_images(engine, config, steps, wanted)
    compose.write(
        config.root, base_image(config, engine, steps), {i.name: tag(i) for i in IMAGES if i.name in images}
    )
    summary(config, engine, steps, images)
    return images


def prepare(config: Config, say: Callable[[str], None], *, everything: bool = False) -> Engine:
    """All but our images: packages, the engine, the base image, and what our images will be built from.

    Returns the engine. Raises as :func:`run`.
    """
    from concurrent.futures import ThreadPoolExecutor

    from runner.provision.packages import Packages
    from runner.provision.steps import Steps

    steps, packages = Steps.of(say), Packages(everything)
    if packages.missing:
        steps(f"Setting up this machine: {ABOUT}.")
    packages.first(steps)
    # From here on what was just installed is imported.
    with ThreadPoolExecutor() as pool:
        installed = pool.submit(packages.rest, steps)
        try:
            engine = _engine(config, steps)
            from runner.provision.base import base_image

            based = pool.submit(base_image, config, engine, steps)
            installed.result()  # before our images: their names have this project's version
            from runner.provision.images import IMAGES, fetch, usual

            fetch(engine, config, steps, IMAGES if everything else usual(engine))
            based.result()
        except BaseException:
            from runner.provision.engine import end_tools

            end_tools()
            raise
    return engine


def _engine(config: Config, steps: Steps) -> Engine:
    from runner.provision.engine import ensure_engine, open_engine

    ensure_engine(config, steps)
    engine = open_engine(config)
    engine.require()
    return engine


def summary(
    config: Config, engine: Engine, steps: Steps, images: Mapping[str, ImageRef] = MappingProxyType({})
) -> None:
    """Say how long it took, which engine was taken, what was downloaded, and what lies on the disk; nothing for no steps."""
    import time

    from runner.provision.engine import engine_host
    from runner.provision.packages import Packages
    from runner.provision.steps import megabytes

    if not steps.steps:
        return
    made = sum(image.size for image in images.values())
    sizes = [f"{megabytes(Packages().size())} of packages"]
    sizes += [f"{megabytes(made)} of our images"] if made else []
    facts = engine.info()
    steps(
        f"{time.monotonic() - steps.started:.0f} s with the engine {facts.name} {facts.version} at {engine_host(config)}"
    )
    fetched = f"{megabytes(steps.downloaded)} downloaded; " if steps.downloaded >= 1e6 else ""
    steps(f"{fetched}on disk: {', '.join(sizes)}")
