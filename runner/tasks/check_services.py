"""What the schema cannot say about ``interaction``, ``services`` and stages in a task.yaml."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import schemas
from runner.model.service import INPUT_OF, OUTPUT_OF, SERVICES
from runner.tasks.data_files import inside, within
from schemas.endpoint import address_problems

Found = tuple[tuple[str | int, ...], str, str]  # place, what, fix
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,99}")
ARGUMENTS = ("arguments.jsonl", "arguments.jsonl.gz")
MAX_DIMENSIONS = 4096


def problems(data: Mapping[str, Any], folder: Path) -> Iterator[Found]:
    """Everything wrong with workflows, interaction, services and stages of a definition; tolerant of its form."""
    workflows = _workflows(data)
    yield from _interaction(data, workflows)
    services = _mapping(data.get("services"))
    yield from _used(data, services, workflows)
    for name, row in services.items():
        if isinstance(row, dict) and name in SERVICES:
            yield from _folders(name, row, folder)
    yield from _search(_mapping(services.get("search")), _mapping(data.get("interaction")))
    yield from _gateway(_mapping(services.get("gateway")))
    yield from _models(services)
    yield from _stages(data, services, folder)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _workflows(data: Mapping[str, Any]) -> list[str]:
    given = data.get("workflow", "batch")
    return [w for w in (given if isinstance(given, list) else [given]) if isinstance(w, str)]


def _interaction(data: Mapping[str, Any], workflows: Collection[str]) -> Iterator[Found]:
    interaction = data.get("interaction")
    if "interactive" not in workflows:
        if interaction is not None:
            yield (
                ("interaction",),
                "interaction is for servers, but the workflow is not interactive",
                "write workflow: interactive, or remove interaction",
            )
        return
    if interaction is None:
        yield (
            ("workflow",),
            "interactive software needs to be told how it is talked to",
            "add interaction: {mode: …}",
        )
        return
    if _mapping(data.get("limits")).get("loopback") is False:
        yield (
            ("limits", "loopback"),
            "a server is talked to through its loopback, which this takes away",
            "remove loopback: false",
        )
    mode = str(_mapping(interaction).get("mode"))
    if mode not in OUTPUT_OF:
        return
    at: tuple[str | int, ...]
    wanted, output = OUTPUT_OF[mode], data.get("output", "run.txt")
    if output != wanted:
        at = ("output",) if "output" in data else ("interaction", "mode")
        yield at, f"the driver of mode {mode} writes {wanted}", f"write output: {wanted}"
    if mode == "debate" and "batch" in workflows:
        yield (
            ("workflow",),
            "a debate needs somebody to talk to: there is no batch form of it",
            "write workflow: interactive",
        )
    if mode == "debate" and "user" not in _mapping(data.get("services")):
        at = ("interaction", "mode")
        yield at, "a debate needs a simulated user", "add services: {user: {data: …}}"


def _used(
    data: Mapping[str, Any], services: Mapping[str, Any], workflows: Collection[str]
) -> Iterator[Found]:
    """Services that nobody would ever reach, and the gateway where it is asked for and is not there."""
    mode = _mapping(data.get("interaction")).get("mode")
    evaluator = _mapping(data.get("evaluator")).get("gateway") is True
    llm = "llm" in _mapping(services.get("user"))
    if "search" in services and "interactive" not in workflows:
        yield ("services", "search"), "only interactive software can reach an index", "remove it"
    if "user" in services and ("interactive" not in workflows or mode == "judge"):
        yield ("services", "user"), "the simulated user is for mode debate only", "remove it"
    if "gateway" in services and not evaluator and not llm:
        yield (
            ("services", "gateway"),
            "nothing uses the gateway",
            "write evaluator: {gateway: true} or services.user.llm, or remove it",
        )
    for wants, at in ((evaluator, ("evaluator", "gateway")), (llm, ("services", "user", "llm"))):
        if wants and "gateway" not in services:
            yield at, "there is no gateway to ask models through", "add services: {gateway: …}"


def _folders(name: str, row: Mapping[str, Any], folder: Path) -> Iterator[Found]:
    places = [(("data",), row.get("data")), (("llm", "prompts"), _mapping(row.get("llm")).get("prompts"))]
    for at, path in places:
        if isinstance(path, str) and inside(folder, path) is None:
            yield (
                ("services", name, *at),
                f'{at[-1]} is "{schemas.show(path)}", which is not inside the task\'s folder',
                "name a folder inside it, without .. and without links that leave it",
            )


def _search(row: Mapping[str, Any], interaction: Mapping[str, Any]) -> Iterator[Found]:
    if not row:
        return
    at = ("services", "search")
    if "image" in row and "data" in row:
        yield (*at, "data"), "another server brings its own data", "remove data, or image"
    if "image" not in row and "data" not in row:
        yield at, "the index needs the arguments that are in it", "add data: FOLDER with arguments.jsonl"
    for key in ("server_port", "command", "health", "env", "writable"):
        if key in row and "image" not in row:
            yield (*at, key), f"{key} is for another server than ours", "remove it, or name its image"
    if row.get("port", 9200) == interaction.get("port", 8080):
        yield (*at, "port"), "the software's own port is the same", "give one of them another number"


def _gateway(row: Mapping[str, Any]) -> Iterator[Found]:
    """Nothing here repeats what was written: it may be a key that was put in the wrong place."""
    at = ("services", "gateway")
    url, key = row.get("base_url"), row.get("key")
    if isinstance(url, str):
        for problem in address_problems(url):
            fix = "write https://, host and path only; the key belongs into key:"
            yield (*at, "base_url"), f"base_url {problem}", fix
    if isinstance(key, str) and not _VARIABLE.fullmatch(key):
        yield (
            (*at, "key"),
            "key is not the name of an environment variable",
            "name a variable such as OPENAI_API_KEY, and put the key itself into the runner's environment; "
            "if this was the key, it has been in a file: replace it",
        )
    if "cost" in row and "price" not in row:
        yield (
            (*at, "cost"),
            "what calls cost cannot be known without prices",
            "add price: {input: …, output: …}",
        )


def _models(services: Mapping[str, Any]) -> Iterator[Found]:
    """A model of the user that the gateway does not allow."""
    allowed = _mapping(services.get("gateway")).get("models")
    model = _mapping(_mapping(services.get("user")).get("llm")).get("model")
    if isinstance(allowed, list) and isinstance(model, str) and model not in allowed:
        near = schemas.closest(model, [m for m in allowed if isinstance(m, str)]).strip()
        at = ("services", "user", "llm", "model")
        yield at, f'the gateway does not allow "{schemas.show(model)}"', near or "add it to gateway.models"


def _stages(data: Mapping[str, Any], services: Mapping[str, Any], folder: Path) -> Iterator[Found]:
    """Datasets made from runs, and truths or inputs that lie in a service's data."""
    rows = data.get("datasets")
    for i, row in enumerate(rows if isinstance(rows, list) else ()):
        if not isinstance(row, dict):
            continue
        source = row.get("from")
        if isinstance(source, dict):
            if (source.get("task"), source.get("dataset")) == (data.get("id"), row.get("id")):
                yield (
                    ("datasets", i, "from"),
                    "a dataset cannot be made from its own runs",
                    "name another one",
                )
            for key in ("inputs", "sources"):
                if key in row:
                    yield (
                        ("datasets", i, key),
                        f"inputs that are made from runs have no {key} of their own",
                        f"remove {key}, or from",
                    )
        truths = row.get("truths")
        place = inside(folder, truths) if isinstance(truths, str) else None
        if place is None and isinstance(row.get("id"), str):
            place = folder / "datasets" / row["id"] / "truths"
        for name, service in services.items():
            path = _mapping(service).get("data")
            base = inside(folder, path) if isinstance(path, str) else None
            if base is not None and place is not None and (within(place, base) or within(base, place)):
                yield (
                    ("services", name, "data"),
                    f'the truths of "{schemas.show(row.get("id"))}" and the data of {name} lie in one another',
                    "give them folders beside each other",
                )


def data_problem(name: str, files: Collection[str]) -> str:
    """What is wrong with the files of a service's data; empty when nothing is."""
    there = any(file in files for file in ARGUMENTS)
    return "" if there else f"the data of {name} hold no {ARGUMENTS[0]} (or .gz)"


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
        yield (
            f"{arguments} of {name} cannot be read: {schemas.show(str(error), 200)}",
            "make or fetch the file again",
        )
        return
    for file, path in vectors.items():
        for wrong, fix in _matrix(path, arguments, count):
            yield f"{schemas.show(file)} of {name}: {wrong}", fix


def _matrix(path: Path, arguments: str, count: int) -> Iterator[tuple[str, str]]:
    from numpy.lib.format import open_memmap

    again = f"write it with numpy.save: one row an argument, in the order of {arguments}"
    try:
        rows = open_memmap(path, mode="r")  # type: ignore[no-untyped-call]
    except (
        OSError,
        EOFError,
        ValueError,
        TypeError,
        ArithmeticError,
        LookupError,
    ) as error:  # numpy says no more
        yield f"not a whole .npy file ({schemas.show(str(error), 200)})", again
        return
    if rows.dtype.str not in ("<f2", "<f4"):
        yield (
            f"its numbers are {schemas.show(str(rows.dtype), 40)}, not float16 or float32",
            "convert them: vectors.astype(numpy.float16)",
        )
    if rows.ndim != 2 or not rows.flags.c_contiguous:
        yield (
            f"it has the shape {schemas.show(str(rows.shape), 80)}, not rows of vectors one after another",
            again,
        )
        return
    if not 1 <= rows.shape[1] <= MAX_DIMENSIONS:
        yield f"its vectors have {rows.shape[1]} dimensions; 1 to {MAX_DIMENSIONS} are possible", again
    if rows.shape[0] != count:
        yield f"{rows.shape[0]} rows, but {arguments} holds {count} arguments", again


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
