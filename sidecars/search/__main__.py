"""``python -m sidecars.search [serve] | prepare``."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from schemas.interrupts import heard
from sidecars import http
from sidecars.search.errors import DataError
from sidecars.search.served import LOG_BYTES, ServedLog

FINE, USAGE, PLATFORM, ORGANISER, INTERRUPTED = 0, 2, 3, 4, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line. Returns the exit code: 0 fine, 2 usage, 3 internal, 4 data that cannot be used."""
    heard()
    words = list(sys.argv[1:] if argv is None else argv)
    first = 1 if words[:1] == ["--debug"] else 0
    if words[first:] and words[first].startswith("-") and words[first] not in ("-h", "--help"):
        words.insert(first, "serve")  # only options: what is wanted is the server
    args = _parser().parse_args(words)
    # One thread a request: numpy's own threads would wait for each other where processors are shared or limited.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        args.call(args)
        return FINE
    except (DataError, http.AddressError) as error:
        problem = error if isinstance(error, DataError) else DataError([str(error)], "give another address")
        print("\n".join(problem.lines()), file=sys.stderr)
        return ORGANISER
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:  # the process border
        if args.debug:
            raise
        missing = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
        if missing not in ("", "sidecars", "schemas"):
            print(
                f"error: the Python package {missing} of the extra `sidecars` is not installed here",
                file=sys.stderr,
            )
            print(
                "  Fix: run `make tools` in a clone, or pip install 'proctor-ir[sidecars]'", file=sys.stderr
            )
            return PLATFORM
        what = f"{type(error).__name__}: {str(error)[:500]!r}"
        print(f"internal error: {what} (--debug shows where)", file=sys.stderr)
        return PLATFORM


def _serve(args: argparse.Namespace) -> None:
    """Open the data folder, then listen until SIGTERM or SIGINT. There is nothing to connect to before all is ready."""
    from sidecars.search.api import Api
    from sidecars.search.app import application
    from sidecars.search.prepared import open_collection

    began = time.monotonic()
    http.end_on_sigterm()
    with (
        open_collection(args.data) as collection,
        contextlib.closing(ServedLog(args.log, args.log_bytes)) as served,
    ):
        app = application(Api(collection, args.index, args.prefix, served, args.threads))
        note = f"{collection.text.count} arguments, {len(collection.matrices)} fields of vectors, {collection.note}"
        note += f", ready in {time.monotonic() - began:.1f} s"
        http.serve(app, socket=args.socket, host=args.host, port=args.port, note=note, connections=None)


def _prepare(args: argparse.Namespace) -> None:
    from sidecars.search.prepared import prepare

    print(json.dumps(prepare(args.data)))


def _parser() -> argparse.ArgumentParser:
    about = "The argument index: a part of Elasticsearch's search interface."
    parser = argparse.ArgumentParser(prog="python -m sidecars.search", description=about)
    parser.add_argument("--debug", action="store_true", help="show tracebacks")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    data = "folder with arguments.jsonl[.gz]"

    serve = commands.add_parser("serve", help="answer searches until SIGTERM (the default)")
    add = serve.add_argument
    add("--data", type=Path, required=True, metavar="DIR", help=data)
    http.add_address(serve)
    add("--index", default="claimrev", metavar="NAME", help="name of the index (default: %(default)s)")
    add("--prefix", default="", metavar="PATH", help="what addresses may begin with, like /arguments")
    add("--log", type=Path, metavar="FILE", help="note there what was served, a JSON line a request")
    add("--log-bytes", type=int, default=LOG_BYTES, metavar="N", help="cap of that file (64 MiB)")
    add("--threads", type=int, metavar="N", help="requests worked on at a time (one a processor)")
    serve.set_defaults(call=_serve)

    prepare = commands.add_parser("prepare", help="index once, so that serving starts at once")
    add = prepare.add_argument
    add("--data", type=Path, required=True, metavar="DIR", help=data)
    prepare.set_defaults(call=_prepare)

    return parser


if __name__ == "__main__":
    sys.exit(main())
