"""``python -m sidecars.user serve``: a simulated user as a server on a Unix socket, or on TCP by itself."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from sidecars.user.dialogue import MODELS


def _parser() -> argparse.ArgumentParser:
    serve = argparse.ArgumentParser(prog="python -m sidecars.user", description=__doc__)
    serve.add_argument("command", nargs="?", choices=["serve"], default="serve", help="serve until SIGTERM")
    serve.add_argument(
        "--data",
        type=Path,
        required=True,
        help="a folder with arguments.jsonl[.gz] and, if wanted, claims.jsonl",
    )
    where = serve.add_mutually_exclusive_group(required=True)
    where.add_argument("--socket", type=Path, help="a Unix socket to listen on")
    where.add_argument("--port", type=int, help="a TCP port to listen on")
    serve.add_argument("--host", default="127.0.0.1", help="with --port (default: 127.0.0.1)")
    serve.add_argument(
        "--model",
        action="append",
        choices=list(MODELS),
        help="a model to serve: "
        + "; ".join(f"{name} {what}" for name, what in MODELS.items())
        + " (default: all)",
    )
    serve.add_argument("--seed", type=int, default=0, help="decides what any-user attacks (default: 0)")
    llm = serve.add_argument_group("a language model finds the words")
    llm.add_argument("--llm-model", help="its name; without it the user is offline and deterministic")
    way = llm.add_mutually_exclusive_group()
    way.add_argument("--llm-socket", type=Path, help="the gateway's Unix socket")
    way.add_argument("--llm-url", help="an OpenAI-compatible address up to /v1")
    llm.add_argument("--llm-key-file", type=Path, help="a file with the key for --llm-url")
    llm.add_argument("--llm-max-tokens", type=int, default=300, help="of one reply (default: 300)")
    llm.add_argument("--prompts", type=Path, help="a folder with opening.md and follow-up.md (default: ours)")
    return serve


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM or SIGINT. 0 after a clean end, 2 when options or data cannot be used."""
    parser = _parser()
    given = parser.parse_args(arguments)
    if bool(given.llm_model) != bool(given.llm_socket or given.llm_url):
        parser.error("--llm-model needs --llm-socket or --llm-url, and the other way round")
    from sidecars.search.errors import DataError
    from sidecars.serving import serve
    from sidecars.user import prompts
    from sidecars.user.app import application
    from sidecars.user.arguments import Arguments
    from sidecars.user.llm import Model, ModelSpeaker
    from sidecars.user.speaker import OfflineSpeaker, Speaker

    try:
        known = Arguments(given.data)
        speaker: Speaker = OfflineSpeaker(known, given.seed)
        if given.llm_model:
            key = given.llm_key_file.read_text("utf-8").strip() if given.llm_key_file else None
            model = Model(
                given.llm_model,
                socket=given.llm_socket,
                base_url=given.llm_url,
                api_key=key,
                seed=given.seed,
                max_tokens=given.llm_max_tokens,
            )
            speaker = ModelSpeaker(model, known, prompts.load(given.prompts), given.seed)
    except DataError as error:
        print("\n".join(error.lines()), file=sys.stderr)
        return 2
    except (OSError, UnicodeDecodeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"user: {known.count} arguments", file=sys.stderr, flush=True)
    try:
        serve(
            application(dict.fromkeys(given.model or MODELS, speaker)),
            socket=given.socket,
            host=given.host,
            port=given.port,
        )
    finally:
        known.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
