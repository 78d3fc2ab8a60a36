"""Pickled document look-ups become JSON Lines: a pickle is a program, so it is read in the sandbox and never run.

The evaluator's own ``convert-lookup`` does it, which knows data only (no class or function is ever looked up); the
container around it has no network, no truths and nothing else to find.
"""

from __future__ import annotations

import os
import secrets
import tempfile
from pathlib import Path, PurePosixPath

from runner.engines.base import ContainerSpec, Engine, Mount
from runner.model.container import Exit, ImageRef
from runner.model.errors import PlatformError, RunnerError, no_such
from runner.model.limits import GIB, MIB, Limits
from runner.tasks.data_files import file_digest
from schemas.documents import show

ENDINGS = (".jsonl", ".jsonl.gz")
OUTPUT = 2 * GIB
MEMORY = 2 * GIB
SECONDS = 6 * 3600.0
LOG = 64 * 1024


def convert(engine: Engine, evaluator: ImageRef, source: Path, target: Path, *, limit: int = OUTPUT) -> str:
    """Convert the pickle ``source`` to ``target`` (``.jsonl`` or ``.jsonl.gz``), which appears as a whole or not at all.

    The result is held in memory until it is complete, at most ``limit`` bytes. Returns what the converter said. Raises E101
    for wrong names, E102 when there is no such file, E402 when the pickle is refused or its result is too large, E3xx
    when the engine fails.
    """
    ending = next((e for e in reversed(ENDINGS) if target.name.endswith(e)), None)
    if ending is None:
        what = f"{show(target.name)} is no name for documents"
        raise RunnerError("E101", what, fix=f"let it end in {' or '.join(ENDINGS)}")
    if target.exists():
        raise RunnerError("E101", f"{show(target.name)} is there already", fix="name another file")
    if not source.is_file() or not target.parent.is_dir():
        lacks = source if not source.is_file() else target.parent
        raise no_such("file or folder", lacks, fix="correct the path", limit=200)
    made = f"documents{ending}"
    data = engine.data_volume(file_digest(source), lambda: [(PurePosixPath("lookup.pkl"), source)])
    limits = Limits(memory=MEMORY, wall_clock=SECONDS, output=limit, output_files=8, log=LOG)
    with (
        tempfile.TemporaryDirectory(prefix=".convert-", dir=target.parent) as staging,
        engine.session(
            f"convert-{secrets.token_hex(6)}-1", labels={"role": "evaluator"}, visibility="public"
        ) as session,
    ):
        out = session.output_volume("out", bytes=limit, inodes=8)
        handle = session.start(
            ContainerSpec(
                role="evaluator",
                image=evaluator,
                command=("evaluator", "convert-lookup", "/data/lookup.pkl", f"/out/{made}"),
                limits=limits,
                mounts=(Mount(data, "/data"), Mount(out, "/out", read_only=False)),
            )
        )
        exit_ = handle.wait(limits.wall_clock)
        said = show(" ".join(handle.logs("stderr", LOG).decode("utf-8", "replace").split()), 600)
        copied = session.copy_out(
            out, Path(staging), allowed={made}.__contains__, max_bytes=limit, max_files=8
        )
        if exit_.code != 0 or made not in copied.files:
            raise _refused(source, exit_, said, limit, copied.full)
        os.replace(Path(staging, made), target)  # noqa: PTH105 (both names are plain)
    return said.replace(made, target.name, 1)


def _refused(source: Path, exit_: Exit, said: str, limit: int, full: bool) -> RunnerError:
    name = show(source.name)
    if full or "no space left on device" in said:
        what = f"what {name} holds does not fit into {limit / MIB:,.0f} MiB"
        why = "The result is held in memory until it is complete."
        return RunnerError("E402", what, why=why, fix="write a .jsonl.gz, or raise --limit")
    what = f"{name} was not converted"
    if exit_.oom_killed:
        why = f"The converter was ended: its limit of {MEMORY / GIB:g} GiB of memory."
    elif exit_.killed is not None:
        why = f"The converter was ended: {SECONDS / 3600:g} hours."
    elif exit_.code == 4:  # it says itself what is wrong
        why = said
    else:
        return PlatformError(what, why=f"The converter ended with {exit_.start_error or exit_.code}. {said}")
    return RunnerError("E402", what, why=why)
