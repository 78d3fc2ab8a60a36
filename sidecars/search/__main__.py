"""``python -m sidecars.search [serve] | prepare | convert``."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from schemas.interrupts import heard
from sidecars.search.errors import DataError

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
    except DataError as error:
        print("\n".join(error.lines()), file=sys.stderr)
        return ORGANISER
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:  # the process border
        if args.debug:
            raise
        print(
            f"internal error: {type(error).__name__}: {str(error)[:500]!r} (--debug shows where)",
            file=sys.stderr,
        )
        return PLATFORM


def _serve(args: argparse.Namespace) -> None:
    from sidecars.search.serving import serve

    serve(
        args.data,
        index=args.index,
        prefix=args.prefix,
        path=args.socket,
        host=args.host,
        port=args.port or 0,
        log=args.log,
        log_bytes=args.log_bytes,
        threads=args.threads,
    )


def _prepare(args: argparse.Namespace) -> None:
    from sidecars.search.prepared import prepare

    print(json.dumps(prepare(args.data, args.out or args.data, args.dtype)))


def _convert(args: argparse.Namespace) -> None:
    from sidecars.search.convert import convert

    print(json.dumps(convert(args.url, args.index, args.out, key_name=args.api_key_env, page=args.page)))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m sidecars.search",
        description="The argument index: a part of Elasticsearch's search interface.",
    )
    parser.add_argument("--debug", action="store_true", help="show tracebacks")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    one = commands.add_parser("serve", help="answer searches until SIGTERM (the default)")
    one.add_argument(
        "--data", type=Path, required=True, metavar="DIR", help="folder with arguments.jsonl[.gz]"
    )
    where = one.add_mutually_exclusive_group(required=True)
    where.add_argument("--socket", type=Path, metavar="PATH", help="Unix socket to listen on")
    where.add_argument("--port", type=int, metavar="N", help="TCP port to listen on (0: any that is free)")
    one.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    one.add_argument(
        "--index", default="claimrev", metavar="NAME", help="name of the index (default: %(default)s)"
    )
    one.add_argument(
        "--prefix", default="", metavar="PATH", help="what addresses may begin with, like /arguments"
    )
    one.add_argument(
        "--log", type=Path, metavar="FILE", help="note there what was served, a JSON line a request"
    )
    one.add_argument("--log-bytes", type=int, default=64 << 20, metavar="N", help="cap of that file (64 MiB)")
    one.add_argument(
        "--threads", type=int, metavar="N", help="requests worked on at a time (one a processor)"
    )
    one.set_defaults(call=_serve)

    two = commands.add_parser("prepare", help="index once, so that serving starts at once")
    two.add_argument(
        "--data", type=Path, required=True, metavar="DIR", help="folder with arguments.jsonl[.gz]"
    )
    two.add_argument(
        "--out", type=Path, metavar="DIR", help="make this a data folder (default: the same folder)"
    )
    two.add_argument("--dtype", choices=("float16", "float32"), help="store copied matrices as this")
    two.set_defaults(call=_prepare)

    three = commands.add_parser("convert", help="copy an index out of a running Elasticsearch")
    three.add_argument(
        "--from", dest="url", required=True, metavar="URL", help="its address, up to the index"
    )
    three.add_argument("--index", required=True, metavar="NAME")
    three.add_argument("--out", type=Path, required=True, metavar="DIR", help="the data folder to write")
    three.add_argument("--api-key-env", metavar="NAME", help="environment variable with an API key")
    three.add_argument(
        "--page", type=int, default=250, metavar="N", help="arguments at a time (default: %(default)s)"
    )
    three.set_defaults(call=_convert)
    return parser


if __name__ == "__main__":
    sys.exit(main())
