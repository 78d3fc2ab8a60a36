"""A dataset folder of TIRA as a task: a README.md whose front matter says which files are inputs and truths of which split.

Source: the dataset folders and their checks in the public repository of TIRA's client (``tira-cli dataset-submission``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Literal

import schemas
from runner.kinds.records.foreign import FILE_NAME, Asked, Given, Part, Taken, name_of, page, plain, untaken
from runner.kinds.release import Wrong, files_of, read
from runner.model.errors import RunnerError
from runner.tasks.data_files import within
from schemas import show

PREFIX = "tira:"
DEPTH = 16
_FRONT = re.compile(rb"\A---[ \t]*\r?\n(.*?)^---[ \t]*\r?\n?(.*)\Z", re.DOTALL | re.MULTILINE)
_RECORDS = {"*.jsonl": "jsonl", "*.tsv": "tsv", "*.csv": "csv", "*.json": "json"}
_WHY = {
    "link": "softwares that prove a task are submissions here; name one as baseline in task.yaml",
    "command": "softwares bring their own commands",
    "image": "the evaluator is not run; measures are computed here",
    "minimum_lines": "here every record of the truths is expected",
    "maximum_lines": "here every record of the truths is expected",
    "max_size_mb": "the limit of outputs is output under limits in task.yaml",
    "re_map": "write the mapped values into the truths, or expect them as they are",
}


def from_tira(source: Path, scratch: Path) -> Taken:
    """The task in a dataset folder, or in an archive of it.

    Raises:
        Wrong: it is none, or something of it leads out of the folder.
        RunnerError: E402 with what is wrong with the front matter; E101 for a task of rankings, which another kind has.
    """
    files = files_of(source, scratch, depth=DEPTH)
    home, readme = _readme(files)
    match = _FRONT.match(read(readme))
    if match is None:
        raise Wrong("has a README.md without front matter", "begin it with ---, configs and tira_configs")
    doc = schemas.load_yaml(b"\n" + match[1], f"{source.name}/README.md", foreign=True)
    if doc.problems:
        raise RunnerError("E402", "the README.md cannot be read", problems=doc.problems)
    given = Given(doc.data)
    own = given.one("tira_configs")
    if not own.data:
        raise Wrong(
            "has no tira_configs in its README.md", "for a collection: runner task new NAME --from FOLDER"
        )
    below = {name.removeprefix(home): path for name, path in files.items() if name.startswith(home)}
    if source.is_dir():
        for name, path in below.items():
            if not within(path, source):
                raise Wrong(f'has a link "{show(name)}" that leads out of it', "put the file itself there")
    text = page(match[2])
    title = re.search(r"^#\s+(.+)$", text, re.M)
    taken = Taken(plain(title[1], 200) if title else source.stem, [], "TIRA")
    taken.pages = [("", re.sub(r"\A\s*#\s.*\n?", "", text))]
    _formats(own, taken)
    _datasets(given, own, below, taken)
    taken.left += untaken(given, _WHY)
    used = {path for part in taken.parts for path in (*part.inputs.values(), *part.truths.values())}
    if rest := sorted(n for n, path in below.items() if path not in used and n != "README.md"):
        taken.left.append(
            f"files that no config names: {', '.join(map(show, rest[:10]))}{' …' if rest[10:] else ''}"
        )
    return taken


def _readme(files: Mapping[str, Path]) -> tuple[str, Path]:
    """The folder of the README.md, with a slash behind it, and that file."""
    found = sorted(
        (n for n in files if PurePosixPath(n).name == "README.md"), key=lambda n: (n.count("/"), n)
    )
    if not found:
        raise Wrong("has no README.md", "name the folder that tira-cli dataset-submission takes")
    return found[0].removesuffix("README.md"), files[found[0]]


def _formats(own: Given, taken: Taken) -> None:
    """What the output is, and what it is evaluated by."""
    baseline, evaluator = own.one("baseline"), own.one("evaluator")
    form = baseline.one("format")
    names = form.texts("name")
    if any(name.removesuffix(".gz").endswith(("run.txt", "run-with-metadata")) for name in names):
        fix = "make it of the folder: runner task new NAME --kind adhoc --from FOLDER"
        raise RunnerError("E101", "the output of this task is a ranking (run.txt)", fix=fix)
    config = form.one("config")
    taken.id_field, taken.value_field = config.text("id_field"), config.text("value_field")
    taken.required = config.texts("required_fields")
    known = next((_RECORDS[name] for name in names if name in _RECORDS), "")
    if names and not known:
        taken.left.append(
            f"the output format {show(', '.join(names))}: it is not known here, records as in the truths stand for it"
        )
    upload = own.text("default_upload_name")
    taken.output = upload if FILE_NAME.fullmatch(upload) else f"predictions.{known}" if known else ""
    truths = own.one("truth_format")
    truths.texts("name")
    fields = truths.one("config")
    taken.truth_id, taken.truth_value = fields.text("id_field"), fields.text("value_field")
    fields.texts("required_fields")
    inputs = own.one("input_format")
    inputs.texts("name")
    inputs.one("config")  # what it says is named as left
    taken.asked = [Asked(name) for name in evaluator.texts("measures")]


def _datasets(given: Given, own: Given, files: Mapping[str, Path], taken: Taken) -> None:
    """A dataset for each split, with the files that its patterns name."""
    bases = {side: _base(own.text(f"resolve_{side}_to")) for side in ("inputs", "truths")}
    found: dict[str, dict[str, dict[str, Path]]] = {}
    for config in given.rows("configs"):
        side = config.text("config_name")
        if side not in bases:
            taken.left.append(f"the config {show(side)}: inputs and truths are read")
            continue
        for row in config.rows("data_files"):
            split = found.setdefault(row.text("split") or "train", {"inputs": {}, "truths": {}})
            for pattern in row.texts("path"):
                matching = _matching(pattern, bases[side], files)
                if not matching:
                    raise Wrong(
                        f"has no files {show(pattern, 100)}, which its README.md names", "correct the pattern"
                    )
                split[side] |= matching
    if not found:
        raise Wrong("names no files under configs in its README.md", "write configs with data_files")
    for name, sides in found.items():
        if not sides["truths"]:
            taken.left.append(f"the split {show(name)}: it has no truths")
            continue
        # The platform keeps test data to itself, too; all others can be had by everybody.
        seen: Literal["public", "blinded"] = "blinded" if name.startswith("test") else "public"
        known = [part.id for part in taken.parts]
        taken.parts.append(Part(name_of(name, known, "data"), seen, sides["inputs"], sides["truths"]))


def _base(path: str) -> str:
    """The folder below which names begin, with a slash behind it; empty for the whole."""
    parts = PurePosixPath(path).parts
    return "".join(f"{part}/" for part in parts if part not in (".", "/"))


def _matching(pattern: str, base: str, files: Mapping[str, Path]) -> dict[str, Path]:
    """The files that a pattern names, by their names below ``base``: those that software or evaluator find there."""
    parts = re.split(r"(\*\*/?|\*|\?)", pattern.removeprefix("./"))
    signs = {"**/": "(?:[^/]+/)*", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    wanted = re.compile("".join(signs.get(part, re.escape(part)) for part in parts))
    return {
        n.removeprefix(base): path for n, path in files.items() if n.startswith(base) and wanted.fullmatch(n)
    }
