"""``python -m sidecars.gateway serve``: the gateway as a server on a Unix socket, or on TCP by itself."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from sidecars import http
from sidecars.gateway.config import ConfigError, load
from sidecars.gateway.ledger import Ledger


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m sidecars.gateway", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    serve = commands.add_parser("serve", help="serve until SIGTERM")
    add = serve.add_argument
    add("--config", type=Path, required=True, help="models, address and budget (JSON)")
    add("--key-file", type=Path, help="a file with the endpoint's key; without it none is sent")
    http.add_address(serve)
    add("--log", type=Path, help="gets a JSON line for every request")
    add("--replies", type=Path, help="gets every reply; what it already holds is known")
    add("--known", type=Path, action="append", default=[], help="replies that need no call")
    add("--replay", action="store_true", help="refuse everything that is not known; needs no key")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM or SIGINT. 0 after a clean end, 2 when the definition cannot be used, 1 when the address cannot."""
    given = _parser().parse_args(arguments)
    try:
        config = load(given.config, given.key_file, replay=given.replay)
        ledger = Ledger(given.log, given.replies, given.known)
    except ConfigError as error:
        for problem in error.problems:
            print(f"gateway: {problem}", file=sys.stderr)
        return 2
    from sidecars.gateway.app import Gateway, application

    app = application(Gateway(config, ledger, replay=given.replay))
    note = f"gateway: {len(ledger.known)} known replies, {len(config.models)} models"
    return http.run(app, given, note)


if __name__ == "__main__":
    sys.exit(main())
