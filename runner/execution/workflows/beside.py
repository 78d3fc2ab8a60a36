"""What an interactive run is given beside its software: the data of its containers, and how much they may write."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from runner.engines.base import Filled, Mount
from runner.execution.job import Job, TaskFiles
from runner.execution.workflows.batch import inputs_volume, model_mounts
from runner.model.errors import RunnerError
from runner.model.limits import MIB
from runner.model.sidecars import Service
from runner.tasks.data_files import files_digest, folder_files
from runner.tasks.services import data_digest

KIB = 1024
SERVED, TURNS = (
    "served.jsonl",
    "turns.jsonl",
)  # what the argument index and the driver leave beside the run file
LOG_BYTES = 32 * MIB  # at most, of what the index notes down about the questions it was asked
LINE_BYTES = 4 * KIB  # of one record beside what the software said
SLACK = 16 * MIB


def with_files(job: Job) -> Job:
    """The same job, which says what it needs of the task's files, so that it can be executed where these are not. Raises E402."""
    return job if job.files is not None else replace(job, files=files_of(job))


def files_of(job: Job) -> TaskFiles:
    """What an interactive job needs to know of the files of its task, looked up unless the job says it. Raises E402 where they are missing."""
    if job.files is not None:
        return job.files
    size, lines = _input_size(job)
    services = job.services.values()
    data = {one.name: digest for one in services if (digest := data_digest(one)) is not None}
    prompts = {one.name: files_digest(folder_files(one.prompts)) for one in services if one.prompts}
    return TaskFiles(size, lines, data, prompts)


@dataclass(frozen=True)
class Sizes:
    """How many bytes an interactive run may leave: ``answers`` in its run file, ``log`` of the argument index, and ``room`` for all that the
    driver writes.
    """

    answers: int
    log: int
    room: int

    @property
    def most(self) -> int:
        """All that a run may leave as its output, in bytes."""
        return self.room + self.log

    def files(self, run_file: str) -> dict[str, int]:
        """The files of the output by name, and how many bytes each may have: run file, the driver's records, the index's log.

        The software's answers are in the run file; beside them stand the inputs there, as in the records.
        """
        return {run_file: self.room - self.answers, TURNS: self.room, SERVED: self.log}

    @classmethod
    def of(cls, job: Job) -> Sizes:
        """Those of a job. Raises E402 as :func:`files_of`."""
        assert job.task.interaction is not None
        files, talk = files_of(job), job.task.interaction
        # All that is handed to the evaluator has to fit into limits.output: run file, records, and this log.
        answers = job.limits.output // 2
        log = max(min(LOG_BYTES, job.limits.output // 4), MIB)
        turns = files.input_lines * (talk.turns if talk.mode == "debate" else 32)
        # Beside what the software says stand the inputs (in run file and records) and a record of each answer.
        return cls(answers, log, answers * 2 + 2 * files.input_bytes + turns * LINE_BYTES + SLACK)


def service_mounts(service: Service, files: TaskFiles, engine: Filled) -> list[Mount]:
    """The data and prompts of a service, in volumes that are filled where they are not there. Raises E402, E306."""
    folders = ((service.data, files.data, "/data"), (service.prompts, files.prompts, "/prompts"))
    return [
        Mount(engine.data_volume(digests[service.name], partial(folder_files, folder)), target)
        for folder, digests, target in folders
        if folder is not None
    ]


def data_mounts(job: Job, engine: Filled) -> list[Mount]:
    """All data that the containers of an interactive run are given. Raises E402, E306."""
    files, mounts = files_of(job), [Mount(inputs_volume(job, engine), "/inputs")]
    for service in job.services.values():
        mounts += service_mounts(service, files, engine)
    return [*mounts, *model_mounts(job, engine)]


def _input_size(job: Job) -> tuple[int, int]:
    """Bytes and lines of what the driver reads. Raises E402 when it is not there."""
    assert job.task.interaction is not None
    talk = job.task.interaction
    path = job.dataset.inputs / talk.input
    try:
        data = path.read_bytes()
    except OSError as error:
        what = f"{talk.input} of {job.task.id}/{job.dataset.id} is missing"
        why = f"The inputs of an interactive run in mode {talk.mode} are that file."
        raise RunnerError("E402", what, why=why, fix="put it into the dataset's inputs") from error
    return len(data), data.count(b"\n") + 1
