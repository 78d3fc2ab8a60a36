"""TIRA's protocol for containers: paths, environment and commands, so that a container made for TIRA runs here.

Source: the public documentation and behaviour of TIRA's client (``tira-run``): the participant's command reads
``$inputDataset`` and writes ``$outputDir``; both are replaced in the command's text and set in the environment.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

INPUT = "/tira-data/input"
OUTPUT = "/tira-data/output"
INPUT_RUN = "/tira-data/input-run"

_PLACEHOLDER = re.compile(
    r"\$(?:\{(inputDataset|outputDir|inputRun)\}|(inputDataset|outputDir|inputRun)(?![A-Za-z0-9_]))"
)


def container_command(command: str | Sequence[str] | None, env: Mapping[str, str]) -> tuple[str, ...] | None:
    """The argument list a container is started with.

    None stays None (the image's own entrypoint). A list is run directly, as it is: it never meets a shell, so only
    its placeholders are filled in. A string is run by the image's ``sh -c``, so that globs and pipes work, after
    ``$inputDataset``, ``$outputDir`` and ``$inputRun`` (also as ``${…}``) were replaced by the paths in ``env``.
    A placeholder without a value (``$inputRun`` when there is no input run) is left for the shell.
    """
    if command is None:
        return None
    if isinstance(command, str):
        return ("sh", "-c", fill(command, env))
    return tuple(fill(argument, env) for argument in command)


def fill(text: str, env: Mapping[str, str]) -> str:
    """``text`` with TIRA's placeholders replaced; other variables stay as they are."""
    return _PLACEHOLDER.sub(lambda match: env.get(match[1] or match[2], match[0]), text)


def container_env(dataset_id: str, input_runs: Sequence[str] = ()) -> dict[str, str]:
    """The environment of a software's container.

    ``input_runs`` are the names of the runs that a stage takes as input; they lie in one folder when there is one,
    and in numbered folders ``1``, ``2``, … below it when there are several. ``HF_HUB_OFFLINE`` keeps model
    libraries from waiting for a network that is not there.
    """
    env = {
        "inputDataset": INPUT,
        "outputDir": OUTPUT,
        "TIRA_INPUT_DATASET": INPUT,
        "TIRA_OUTPUT_DIR": OUTPUT,
        "TIRA_DATASET_ID": dataset_id,
        "HF_HUB_OFFLINE": "1",
    }
    if input_runs:
        env["inputRun"] = INPUT_RUN
    return env


def input_run_paths(input_runs: Sequence[str]) -> dict[str, str]:
    """Where each input run is mounted, by its name."""
    if len(input_runs) == 1:
        return {input_runs[0]: INPUT_RUN}
    return {name: f"{INPUT_RUN}/{number}" for number, name in enumerate(input_runs, 1)}
