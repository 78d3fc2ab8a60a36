"""What the schema cannot say about ``interaction``, ``services`` and stages in a task.yaml, and about services' data."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import schemas
from runner.model.mapping import rows
from runner.model.problems import Pointer, Problems
from runner.model.sidecars import INPUT_OF, OUTPUT_OF, SIDECARS
from runner.tasks.data_files import inside, within
from schemas.endpoint import address_problems
from schemas.vectors import matrix_problems

Raw = Mapping[str, Any]
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,99}")
ARGUMENTS = SIDECARS["search"].files


def check_services(folder: Path, data: Raw, problems: Problems) -> None:
    """Note what is wrong with workflows, interaction, services and stages of a definition.

    ``data`` is the definition as :func:`schemas.usable` leaves it.
    """
    services = data.get("services", {})
    if "interactive" in data.get("workflow", "batch"):
        _check_interaction(data, problems)
    elif "interaction" in problems.doc.data:
        what = "interaction is for servers, but the workflow is not interactive"
        problems.add(("interaction",), what, "write workflow: interactive, or remove interaction")
    _check_use(data, problems)
    if "search" in services:
        _check_search(services["search"], data.get("interaction", {}), problems)
    if "gateway" in services:
        _check_gateway(services["gateway"], services.get("user", {}), problems)
    for name, row in services.items():
        check_inside(folder, ("services", name, "data"), row.get("data"), problems)
        prompts = row.get("llm", {}).get("prompts")
        check_inside(folder, ("services", name, "llm", "prompts"), prompts, problems)
        if "data" in row:
            _check_apart(folder, data, name, row["data"], problems)
    for i, row in rows(data, "datasets"):
        _check_stage(data, row, ("datasets", i), problems)


def check_inside(folder: Path, at: Pointer, path: str | None, problems: Problems) -> None:
    """Note a path that leaves the task's folder, by name or by a link."""
    if path is not None and inside(folder, path) is None:
        what = f'{at[-1]} is "{schemas.show(path)}", which is not inside the task\'s folder'
        problems.add(at, what, "name a folder inside it, without .. and without links that leave it")


def _check_interaction(data: Raw, problems: Problems) -> None:
    """How servers are talked to."""
    at, mode = ("interaction", "mode"), data.get("interaction", {}).get("mode")
    if "interaction" not in problems.doc.data:
        what = "interactive software needs to be told how it is talked to"
        problems.add(("workflow",), what, "add interaction: {mode: …}")
    elif "batch" not in data["workflow"] and data.get("limits", {}).get("loopback") is False:
        what = "a server is talked to through its loopback, which this takes away"
        problems.add(("limits", "loopback"), what, "remove loopback: false")
    if mode is not None and data.get("output", "run.txt") != (output := OUTPUT_OF[mode]):
        place = ("output",) if "output" in data else at
        problems.add(place, f"the driver of mode {mode} writes {output}", f"write output: {output}")
    if mode == "debate" and "batch" in data["workflow"]:
        what = "a debate needs somebody to talk to: there is no batch form of it"
        problems.add(("workflow",), what, "write workflow: interactive")
    if mode == "debate" and "user" not in data.get("services", {}):
        problems.add(at, "a debate needs a simulated user", "add services: {user: {data: …}}")


def _check_use(data: Raw, problems: Problems) -> None:
    """Services that nobody would ever reach, and the gateway where it is asked for and is not there."""
    services, interactive = data.get("services", {}), "interactive" in data.get("workflow", "batch")
    judges = data.get("interaction", {}).get("mode") == "judge"
    asking = {
        ("evaluator", "gateway"): data.get("evaluator", {}).get("gateway") is True,
        ("services", "user", "llm"): "llm" in services.get("user", {}),
    }
    for name in services:
        if name in SIDECARS and SIDECARS[name].port is not None and not interactive:
            what = f"only interactive software can reach the {SIDECARS[name].title}"
            problems.add(("services", name), what, "remove it")
    if "user" in services and (judges or not interactive):
        problems.add(("services", "user"), "the simulated user is for mode debate only", "remove it")
    if "gateway" in services and not any(asking.values()):
        fix = "write evaluator: {gateway: true} or services.user.llm, or remove it"
        problems.add(("services", "gateway"), "nothing uses the gateway", fix)
    for at, asks in asking.items():
        if asks and "gateway" not in services:
            problems.add(at, "there is no gateway to ask models through", "add services: {gateway: …}")


def _check_search(row: Raw, interaction: Raw, problems: Problems) -> None:
    at = ("services", "search")
    if "image" in row and "data" in row:
        problems.add((*at, "data"), "another server brings its own data", "remove data, or image")
    if "image" not in row and "data" not in row:
        what = "the index needs the arguments that are in it"
        problems.add(at, what, "add data: FOLDER with arguments.jsonl")
    for key in ("server_port", "command", "health", "env", "writable"):
        if key in row and "image" not in row:
            what = f"{key} is for another server than ours"
            problems.add((*at, key), what, "remove it, or name its image")
    if row.get("port", 9200) == interaction.get("port", 8080):
        what = "the software's own port is the same"
        problems.add((*at, "port"), what, "give one of them another number")


def _check_gateway(row: Raw, user: Raw, problems: Problems) -> None:
    """Nothing here repeats an address or a key: it may be a secret that was put in the wrong place."""
    at, models, model = ("services", "gateway"), row.get("models", []), user.get("llm", {}).get("model")
    for problem in address_problems(row["base_url"]) if "base_url" in row else ():
        fix = "write https://, host and path only; the key belongs into key:"
        problems.add((*at, "base_url"), f"base_url {problem}", fix)
    if "key" in row and not _VARIABLE.fullmatch(row["key"]):
        fix = (
            "name a variable such as OPENAI_API_KEY, and put the key itself into the runner's environment; "
            "if this was the key, it has been in a file: replace it"
        )
        problems.add((*at, "key"), "key is not the name of an environment variable", fix)
    if "cost" in row and "price" not in row:
        what = "what calls cost cannot be known without prices"
        problems.add((*at, "cost"), what, "add price: {input: …, output: …}")
    if models and model is not None and model not in models:
        near = schemas.closest(model, filter(None, models)).strip()
        what = f'the gateway does not allow "{schemas.show(model)}"'
        problems.add(("services", "user", "llm", "model"), what, near or "add it to gateway.models")


def _check_stage(data: Raw, row: Raw, at: tuple[str | int, ...], problems: Problems) -> None:
    """A dataset that is made from runs."""
    source = row.get("from", {})
    if "id" in data and (source.get("task"), source.get("dataset")) == (data["id"], row.get("id")):
        problems.add((*at, "from"), "a dataset cannot be made from its own runs", "name another one")
    for key in ("inputs", "sources"):
        if source and key in row:
            what = f"inputs that are made from runs have no {key} of their own"
            problems.add((*at, key), what, f"remove {key}, or from")


def _check_apart(folder: Path, data: Raw, name: str, path: str, problems: Problems) -> None:
    """Truths that lie in a service's data, or the other way round."""
    base = inside(folder, path)
    for _, row in rows(data, "datasets"):
        truths = inside(folder, row.get("truths", f"datasets/{row.get('id')}/truths"))
        if base is not None and truths is not None and (within(truths, base) or within(base, truths)):
            what = f'the truths of "{row.get("id")}" and the data of {name} lie in one another'
            problems.add(("services", name, "data"), what, "give them folders next to each other")


def data_problem(name: str, files: Collection[str]) -> str:
    """What is wrong with the files of a service's data; empty when nothing is."""
    wanted = SIDECARS[name].files
    missing = wanted and not any(file in files for file in wanted)
    return f"the data of {name} hold no {wanted[0]} (or .gz)" if missing else ""


def vector_problems(name: str, files: Mapping[str, Path]) -> Iterator[tuple[str, str]]:
    """What is wrong with the vectors in a service's data, and what to do: read from their headers alone.

    ``files`` are all files of the folder by their names in it. The rules are those of ``sidecars.search``.
    """
    vectors = {file: path for file, path in sorted(files.items()) if re.fullmatch(r"[^/]+\.npy", file)}
    arguments = next((file for file in ARGUMENTS if file in files), None)
    if not vectors or arguments is None:
        return
    try:
        count = _lines(files[arguments])
    except (OSError, EOFError, zlib.error) as error:
        what = f"{arguments} of {name} cannot be read: {schemas.show(str(error), 200)}"
        yield what, "make or fetch the file again"
        return
    for file, path in vectors.items():
        for wrong, fix in _matrix(path, arguments, count):
            yield f"{schemas.show(file)} of {name}: {wrong}", fix


def _matrix(path: Path, arguments: str, count: int) -> Iterator[tuple[str, str]]:
    from numpy.lib.format import open_memmap

    try:
        matrix = open_memmap(path, mode="r")  # type: ignore[no-untyped-call]
    except (OSError, EOFError, ValueError, TypeError, ArithmeticError, LookupError) as error:
        # numpy says no more
        what = f"not a whole .npy file ({schemas.show(str(error), 200)})"
        yield what, f"write it with numpy.save: one row an argument, in the order of {arguments}"
        return
    yield from matrix_problems(matrix, arguments, count)


def _lines(path: Path) -> int:
    """How many lines of a file (plain or gzip) hold anything; no line is ever held whole that is longer than 1 MiB."""
    count, held = 0, False
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    with gzip.open(path) if packed else path.open("rb") as stream:
        while piece := stream.readline(1 << 20):
            held = held or bool(piece.strip())
            if piece.endswith(b"\n"):
                count, held = count + held, False
    return count + held


def input_problem(names: Collection[str], mode: str) -> str:
    """What is wrong with the files that a scenario sees of a dataset when a driver reads them; empty when nothing."""
    wanted = INPUT_OF[mode]
    return "" if wanted in names else f"holds no {wanted}, which the driver of mode {mode} reads"
