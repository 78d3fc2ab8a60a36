"""``python -m sidecars.user serve``: a simulated user as a server on a Unix socket, or on TCP by itself."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from sidecars import http
from sidecars.user.dialogue import MODELS


def _parser() -> argparse.ArgumentParser:
    serve = argparse.ArgumentParser(prog="python -m sidecars.user", description=__doc__)
    add = serve.add_argument
    add("command", nargs="?", choices=["serve"], default="serve", help="serve until SIGTERM")
    data = "a folder with arguments.jsonl[.gz] and, if wanted, claims.jsonl"
    add("--data", type=Path, required=True, help=data)
    http.add_address(serve)
    models = "; ".join(f"{name} {what}" for name, what in MODELS.items())
    add("--model", action="append", choices=list(MODELS), help=f"a model to serve: {models} (default: all)")
    add("--seed", type=int, default=0, help="decides what any-user attacks (default: 0)")
    llm = serve.add_argument_group("a language model finds the words")
    add = llm.add_argument
    add("--llm-model", help="its name; without it the user is offline and deterministic")
    way = llm.add_mutually_exclusive_group()
    way.add_argument("--llm-socket", type=Path, help="the gateway's Unix socket")
    way.add_argument("--llm-url", help="an OpenAI-compatible address up to /v1")
    add("--llm-key-file", type=Path, help="a file with the key for --llm-url")
    add("--llm-max-tokens", type=int, default=300, help="of one reply (default: 300)")
    add("--prompts", type=Path, help="a folder with opening.md and follow-up.md (default: ours)")
    return serve


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM or SIGINT. 0 after a clean end, 2 when options or data cannot be used, 1 when the address cannot."""
    parser = _parser()
    given = parser.parse_args(arguments)
    if bool(given.llm_model) != bool(given.llm_socket or given.llm_url):
        parser.error("--llm-model needs --llm-socket or --llm-url, and the other way round")
    from sidecars.search.errors import DataError
    from sidecars.user import prompts
    from sidecars.user.app import application
    from sidecars.user.arguments import Arguments
    from sidecars.user.llm import Model, ModelSpeaker
    from sidecars.user.speaker import OfflineSpeaker, Speaker

    try:
        known = Arguments(given.data)
        speaker: Speaker = OfflineSpeaker(known, given.seed)
        if given.llm_model:
            model = Model(
                given.llm_model,
                socket=given.llm_socket,
                base_url=given.llm_url,
                api_key=given.llm_key_file.read_text("utf-8").strip() if given.llm_key_file else None,
                seed=given.seed,
                max_tokens=given.llm_max_tokens,
            )
            speaker = ModelSpeaker(model, known, prompts.load(given.prompts), given.seed)
    except (DataError, OSError, UnicodeDecodeError) as error:
        lines = error.lines() if isinstance(error, DataError) else [f"error: {error}"]
        print("\n".join(lines), file=sys.stderr)
        return 2
    try:
        app = application(dict.fromkeys(given.model or MODELS, speaker))
        return http.run(app, given, f"user: {known.count} arguments")
    finally:
        known.close()


if __name__ == "__main__":
    sys.exit(main())
