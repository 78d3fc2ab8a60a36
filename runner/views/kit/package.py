"""What goes into the kit of a task, and how it is written: the same bytes for the same files, on every machine.

Only what is named here goes in: the rules, public data, the checker, baselines and licences. Whatever else lies in the task's folder,
the data directory or the private root stays where it is.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import posixpath
import re
import tarfile
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import schemas
from runner.exchange.look import source
from runner.model.calendar import calendar
from runner.model.errors import RunnerError
from runner.model.kinds import kind_spec
from runner.submissions.load import load_submission
from runner.tasks.check_data import check_task
from runner.tasks.data_files import file_digest, folder_files, within
from runner.tasks.load import named_files
from runner.tasks.request import request
from runner.views.hidden import search_for
from runner.views.overview.facts import overview
from runner.views.overview.screen import lines
from runner.views.pages import render
from schemas.files import atomic_path, file_sha256

if TYPE_CHECKING:
    from runner.model.config import Config
    from runner.model.task import Dataset, Stated, Task

Content = bytes | Path
SUMS = "SHA256SUMS"
STUB = "submissions/my-team/stub"
_LICENCES = ("LICEN[CS]E*", "COPYING*", "NOTICE*")
_STATED: Mapping[Stated, str] = {"licence": "licence of the data", "terms": "terms", "contact": "whom to ask"}


@dataclass(frozen=True)
class Kit:
    """A kit that was written: the archive, its SHA-256 and bytes, how many files it has, and what it has not, in words."""

    task: str
    archive: str
    sha256: str
    size: int
    files: int
    without: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """The same as JSON data."""
        return asdict(self)


def write_kit(config: Config, task: Task, out: Path, registered: Collection[str] = ()) -> Kit:
    """Write the kit of ``task`` to ``out/TASK-kit.tar.gz``; the folder is made where it is not there.

    Baselines that are ``registered`` without a folder of their own, such as uploaded run files, stay away.

    Raises:
        RunnerError: E403, E411 or E402 when ``runner task check`` would, E411 also when a text of hidden topics or truths is in
            what would go in; then nothing is written. E202 and E207 for a baseline that cannot be loaded.
        OSError: when it cannot be written.
    """
    check_task(task, config, optional=False, registered=registered)
    without = list(_without(task))
    files = _files(config, task, without)
    _refuse_hidden(task, files)
    files[SUMS] = "".join(f"{_digest(files[name])}  {name}\n" for name in sorted(files)).encode()
    target = out / f"{task.id}-kit.tar.gz"
    out.mkdir(parents=True, exist_ok=True)
    with atomic_path(target, mode=0o644) as part:
        _pack(part, f"{task.id}-kit", files)
    digest, size = file_sha256(target), target.stat().st_size
    return Kit(task.id, str(target), digest, size, len(files), tuple(without))


def _files(config: Config, task: Task, without: list[str]) -> dict[str, Content]:
    """Every file of the kit by its name, without the checksums."""
    files: dict[str, Content] = {"RULES.md": _rules(task)}
    home = f"tasks/{task.id}"
    for path in [task.folder / "task.yaml", task.folder / "README.md", *_licences(task.folder)]:
        if path.is_file() and not path.is_symlink():
            files[f"{home}/{path.name}"] = path
    for one in named_files(task.kind, task.definition.get("options", {})):  # they lie inside the folder
        files[f"{home}/{posixpath.normpath(one.path)}"] = task.folder / one.path
    public = [d for d in task.datasets.values() if d.visibility == "public" and d.stage is None]
    for dataset in public:
        files |= _data(task, dataset)
    for folder in _service_folders(task):
        files |= _below(folder, _name(task, folder))
    # A server writes no run file: what was said to it is written down by the platform.
    written = "batch" in task.workflows or task.takes_uploads
    checker = _checker(task, public) if written and task.evaluator_image is None else {}
    registration = calendar(task).registration
    if registration is not None and registration.terms_file:  # it lies inside the folder
        terms = registration.terms_file
        files[f"{home}/{posixpath.normpath(terms)}"] = task.folder / terms
    named = dict.fromkeys(t.baseline for t in task.tables.values() if t.baseline)
    baselines = [name for name in named if (config.submissions / name / "submission.yaml").is_file()]
    for name in baselines:
        files |= _software(config, task, name)
    files |= checker
    stub = _stub(task) if "batch" in task.workflows else {}
    files |= stub
    values = {
        "stub": STUB if stub else "",
        "inputs": _name(task, public[0].inputs) if public else "",
        "task": task,
        "public": public,
        "baselines": baselines,
        "checks": bool(checker),
        "without": without,
    }
    values["licences"] = sorted(n for n in files if any(PurePosixPath(n).match(p) for p in _LICENCES))
    ours = {d.id for d in public}
    values["stated"] = {
        words: texts
        for name, words in _STATED.items()
        if (texts := sorted({text for d, text in task.stated(name).items() if text and d in ours}))
    }
    values["fetched"] = any(dataset.sources for dataset in public)
    files["README.md"] = render("runner.views.kit/readme.md", **values).encode()
    files["submissions/README.md"] = (source("runner.views.kit/submissions.md") or "").encode()
    return files


def _rules(task: Task) -> bytes:
    """The readable page of ``runner task show``."""
    head = [f"# {task.title}", "", *([task.description, ""] if task.description else [])]
    return "\n".join([*head, "```text", *lines(overview(task)), "```", ""]).encode()


def _licences(folder: Path) -> Iterator[Path]:
    for pattern in _LICENCES:
        yield from sorted(folder.glob(pattern))


def _data(task: Task, dataset: Dataset) -> Mapping[str, Content]:
    """Inputs and truths of a public dataset, without what is fetched from elsewhere: that may not be ours to pass on."""
    found: dict[str, Content] = {}
    fetched = {source.path for source in dataset.sources}
    for folder in (dataset.inputs, dataset.truths):
        if folder.is_dir():
            found |= {
                n: path for n, path in _below(folder, _name(task, folder)).items() if path not in fetched
            }
    return found


def _name(task: Task, folder: Path) -> str:
    """A folder of the task as the kit names it."""
    return f"tasks/{task.id}/{folder.relative_to(task.folder).as_posix()}"


def _service_folders(task: Task) -> list[Path]:
    """The folders of what services serve: a software that is tried at home is served the same."""
    return [f for s in task.services.values() for f in (s.data, s.prompts) if f is not None]


def _below(folder: Path, name: str) -> dict[str, Content]:
    """The files of a folder, without those whose names begin with a dot and what programs leave there. Raises E402 for links."""
    return {
        f"{name}/{file}": path
        for file, path in folder_files(folder)
        if not any(part.startswith(".") or part == "__pycache__" for part in file.parts)
    }


def _software(config: Config, task: Task, name: str) -> Mapping[str, Content]:
    """A baseline: its submission.yaml, and what its image is built from. Run files stay away: they answer hidden topics."""
    team, _, software = name.partition("/")
    found = load_submission(config, team, software, {task.id: task})
    home = f"submissions/{team}"
    files: dict[str, Content] = {f"{home}/{software}/submission.yaml": found.folder / "submission.yaml"}
    if found.build is not None and not found.build.git:
        context = found.build.context.relative_to(config.submissions).as_posix()
        files |= _below(found.build.context, f"submissions/{context}")
        for shared in found.build.shared:
            files[f"submissions/{shared.relative_to(config.submissions).as_posix()}"] = shared
    return files


def _stub(task: Task) -> Mapping[str, Content]:
    """A software that writes the examples of all outputs; nothing where the task has none."""
    outputs = kind_spec(task.kind).outputs
    given = [one for one in outputs(task) if one.example_file] if outputs is not None else []
    if not given:
        return {}
    files: dict[str, Content] = {f"{STUB}/examples/{o.file}": task.folder / o.example_file for o in given}
    files[f"{STUB}/main.py"] = (source("runner.views.kit/stub.py") or "").encode()
    for name in ("Dockerfile", "submission.yaml"):
        text = source(f"runner.views.kit/stub.{name.lower()}") or ""
        files[f"{STUB}/{name}"] = text.replace("TASK", task.id).encode()
    return files


def _checker(task: Task, public: list[Dataset]) -> Mapping[str, Content]:
    """The evaluator's own checker as it is installed here, and what it is asked for each public dataset."""
    if task.kind not in schemas.kinds():
        return {}
    base = Path(schemas.__file__).parents[1]
    files: dict[str, Content] = {"checker/check.py": (source("runner.views.kit/check.py") or "").encode()}
    for package in ("evaluator", "schemas"):
        files |= _below(base / package, f"checker/{package}")
    lock = (base / "evaluator/requirements.lock").read_text("utf-8")
    packages = ["jiter", "jsonschema", *kind_spec(task.kind).checker]
    needed = [re.search(rf"^{re.escape(name)}==\S+", lock, re.M) or [name] for name in packages]
    files["checker/requirements.txt"] = "".join(f"{one[0]}\n" for one in needed).encode()
    for licence in [*_licences(base), *sorted(base.glob("proctor_ir-*.dist-info/licenses/LICENSE"))][:1]:
        files["checker/LICENSE"] = licence
    for dataset in public:
        asked = request(task, dataset, task.default_scenario().id, task.output)
        asked["paths"] |= {
            "inputs": dataset.inputs.relative_to(task.folder.parents[1]).as_posix(),
            "truths": dataset.truths.relative_to(task.folder.parents[1]).as_posix(),
            "services": None,
            "gateway": None,
        }
        files[f"checker/requests/{dataset.id}.json"] = json.dumps(asked, indent=1, sort_keys=True).encode()
    return files


def _without(task: Task) -> Iterator[str]:
    """What takes part in the task, but is not in its kit."""
    for dataset in task.datasets.values():
        if dataset.visibility == "blinded":
            yield f"{dataset.id}: blinded"
        elif dataset.stage is not None:
            yield f"{dataset.id}: made from runs"
        elif dataset.sources:
            yield f"{dataset.id}: {', '.join(sorted(one.name for one in dataset.sources))} (from elsewhere)"
    for model in task.models:
        yield f"the model for {model.target}"


def _refuse_hidden(task: Task, files: Mapping[str, Content]) -> None:
    """Raise E411 when a hidden file would go in, or a text of one is in what people wrote: pages, definitions, baselines."""
    blinded = [d for d in task.datasets.values() if d.visibility == "blinded"]
    for name, content in files.items():
        if isinstance(content, Path) and any(
            within(content, f) for d in blinded for f in (d.inputs, d.truths)
        ):
            what = f"{schemas.show(name, 300)} belongs to a blinded dataset"
            raise RunnerError("E411", what, fix="give the datasets folders next to each other")
    if task.demo:  # its README may show what it calls blinded
        return
    data = [folder for d in task.datasets.values() for folder in (d.inputs, d.truths)]
    given = tuple(
        f"{_name(task, folder)}/"
        for folder in [*data, *_service_folders(task)]
        if within(folder, task.folder)
    )
    search = search_for(task)
    for name, content in files.items():
        if not name.startswith(("checker/", *given)):  # data were compared with hidden files as files
            raw = content if isinstance(content, bytes) else content.read_bytes()
            search.text(name, raw.decode("utf-8", "replace"))
            search.file(name, raw)
    for dataset, places in search.found.items():
        if places:
            what = f'text of hidden files of "{schemas.show(dataset)}" would be in the kit'
            fix = "see where it comes from (a description, a copy, a name), and take it out"
            why = f"It is in {schemas.show(', '.join(sorted(places)), 300)}."
            raise RunnerError("E411", what, why=why, fix=fix)


def _digest(content: Content) -> str:
    return file_digest(content) if isinstance(content, Path) else hashlib.sha256(content).hexdigest()


def _pack(target: Path, folder: str, files: Mapping[str, Content]) -> None:
    """Write the archive: sorted, without owners and times."""
    with (
        target.open("wb") as raw,
        gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT) as archive,
    ):
        for name, content in sorted(files.items()):
            info = tarfile.TarInfo(f"{folder}/{name}")
            info.mode = 0o644
            if isinstance(content, bytes):
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
                continue
            with content.open("rb") as file:
                stat = content.stat()
                info.size, info.mode = stat.st_size, 0o755 if stat.st_mode & 0o100 else 0o644
                archive.addfile(info, file)
