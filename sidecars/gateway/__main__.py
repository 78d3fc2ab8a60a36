"""``python -m sidecars.gateway serve``: the gateway as a server on a Unix socket, or on TCP by itself."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from sidecars.gateway.books import Books
from sidecars.gateway.config import ConfigError, load


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m sidecars.gateway", description=__doc__)
    serve = parser.add_subparsers(dest="command", required=True).add_parser(
        "serve", help="serve until SIGTERM"
    )
    serve.add_argument("--config", type=Path, required=True, help="models, address and budget (JSON)")
    serve.add_argument(
        "--key-file", type=Path, help="a file with the endpoint's key; without it none is sent"
    )
    where = serve.add_mutually_exclusive_group(required=True)
    where.add_argument("--socket", type=Path, help="a Unix socket to listen on")
    where.add_argument("--port", type=int, help="a TCP port to listen on")
    serve.add_argument("--host", default="127.0.0.1", help="with --port (default: 127.0.0.1)")
    serve.add_argument("--log", type=Path, help="gets a JSON line for every request")
    serve.add_argument("--replies", type=Path, help="gets every reply; what it already holds is known")
    serve.add_argument("--known", type=Path, action="append", default=[], help="replies that need no call")
    serve.add_argument(
        "--replay", action="store_true", help="refuse everything that is not known; needs no key"
    )
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM or SIGINT. 0 after a clean end, 2 when the definition cannot be used."""
    given = _parser().parse_args(arguments)
    try:
        config = load(given.config, given.key_file, replay=given.replay)
        books = Books(given.log, given.replies, given.known)
    except ConfigError as error:
        for problem in error.problems:
            print(f"gateway: {problem}", file=sys.stderr)
        return 2
    from sidecars.gateway.app import Gateway, application
    from sidecars.serving import serve

    print(
        f"gateway: {len(books.known)} known replies, {len(config.models)} models", file=sys.stderr, flush=True
    )
    app = application(Gateway(config, books, replay=given.replay))
    serve(app, socket=given.socket, host=given.host, port=given.port)
    return 0


if __name__ == "__main__":
    sys.exit(main())
