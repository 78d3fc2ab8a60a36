"""``python -m sidecars.driver --config driver.json``: see ``schemas/driver.schema.json`` for the file.

Exits with 0 whenever ``driver.json`` was left in the output folder, and 2 when its configuration is wrong.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from pathlib import Path

from sidecars.driver.config import Config, InputError
from sidecars.driver.run import Report, run


def main(arguments: list[str] | None = None) -> int:
    """The command; returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m sidecars.driver", description=__doc__)
    parser.add_argument("--config", type=Path, required=True)
    try:
        config = Config.load(parser.parse_args(arguments).config)
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    report = asyncio.run(_until_stopped(config))
    if report.part:
        print(f"{report.part}: {report.message}", file=sys.stderr)
    return 0


async def _until_stopped(config: Config) -> Report:
    """The run; SIGTERM ends it, and leaves what was finished."""
    work = asyncio.create_task(run(config, lambda text: print(text, flush=True)))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, work.cancel)
    return await work


if __name__ == "__main__":
    sys.exit(main())
