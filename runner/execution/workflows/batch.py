"""The batch workflow: inputs → software → output directory. No network, one container."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath

from runner.engines.base import Cancelled, ContainerSpec, Engine, Filled, Handle, Mount, Volume
from runner.execution.job import Executed, Job
from runner.execution.workflows.starting import begin, conclude, keep_logs
from runner.model.container import Collected, Exit, ImageRef
from runner.model.errors import PlatformError, RunnerError
from runner.model.task import Model, Task
from runner.records.archive import Attempt
from runner.tasks.data_files import folder_files
from runner.tasks.files import model_digest, view_files
from runner.tasks.tira import INPUT, OUTPUT, input_run_paths
from schemas.details import Detail


def run(job: Job, engine: Engine, attempt_id: str, staging: Path, cancelled: Callable[[], bool]) -> Executed:
    """Execute ``job`` once and leave ``output/`` and ``logs/`` in ``staging``.

    Whatever the software does ends in the verdict. A failure of the platform ends in the verdict
    ``platform-error``; only :class:`KeyboardInterrupt` leaves this function otherwise, E301, E307 and E311: an engine
    that is gone, or is not for this data, and a run taken as input whose files are damaged, say nothing about this run,
    and would use up its tries, or those of all others.
    """
    started = begin(staging)
    collected, exit_, platform = Collected(), None, None
    try:
        exit_, collected = _execute(job, engine, attempt_id, staging, cancelled)
    except Cancelled:
        exit_ = Exit(code=None, killed="cancel")
    except PlatformError as error:
        if error.code in ("E301", "E307", "E311"):
            raise
        platform = Detail("platform", what=error.what, why=error.why)
    return conclude(job, started, collected, exit_, platform=platform)


def _execute(
    job: Job, engine: Engine, attempt_id: str, staging: Path, cancelled: Callable[[], bool]
) -> tuple[Exit, Collected]:
    assert job.image is not None
    image, limits = engine.resolve(job.image), job.limits
    mounts = data_mounts(job, engine)
    labels = {"run": job.run_id, "team": job.team}
    visibility = job.dataset.visibility
    with engine.session(attempt_id, labels=labels, visibility=visibility, cancelled=cancelled) as session:
        out = session.output_volume("output", bytes=limits.output, inodes=limits.output_files)
        handle = session.start(software_spec(job, image, (*mounts, Mount(out, OUTPUT, read_only=False))))
        handle.over(limits.wall_clock, cancelled)
        expected = output_files(job.task).__contains__
        # In the moment in which the engine may still record who ended it.
        collected = session.copy_out(
            out, staging / "output", allowed=expected, max_bytes=limits.output, max_files=limits.output_files
        )
        exit_ = handle.wait(limits.wall_clock, cancelled)
        keep_logs(handle, staging / "logs", limits.log)
        return exit_, collected


def output_files(task: Task) -> frozenset[str]:
    """The names of the files that a software which writes its output itself may leave."""
    # What it says of the experiment is taken out, too: https://www.ir-metadata.org
    return frozenset({task.output, f"{task.output}.gz", "ir-metadata.yml"})


def data_mounts(job: Job, engine: Filled) -> list[Mount]:
    """All data that the software is given, in volumes that are filled where they are not there. Raises E402, E306, E307."""
    return [Mount(inputs_volume(job, engine), INPUT), *model_mounts(job, engine), *_input_runs(job, engine)]


def software_spec(
    job: Job, image: ImageRef, mounts: Sequence[Mount], join: Handle | None = None
) -> ContainerSpec:
    """The container of the software of ``job``, of whichever workflow."""
    spec = ContainerSpec("software", image, job.command, job.limits, tuple(mounts), job.env, join=join)
    return replace(spec, exceptions=job.exceptions)


def inputs_volume(job: Job, engine: Filled) -> Volume:
    """The volume with the part of the inputs that the job's scenario shows."""
    view = job.task.scenarios[job.scenario]
    return engine.data_volume(str(job.lock["digests"]["view"]), partial(view_files, job.dataset, view))


def model_mounts(job: Job, engine: Filled) -> list[Mount]:
    """The task's models at their paths. Raises E402 when one has another content than task.yaml says."""
    return [
        Mount(engine.data_volume(m.digest.removeprefix("sha256:"), partial(_model_files, m)), m.target)
        for m in job.models
    ]


def _model_files(model: Model) -> list[tuple[PurePosixPath, Path]]:
    """The files of a model that go into the volume with its digest. Raises E402 when they have another one."""
    actual = model_digest(model)
    if actual != model.digest:
        what, why = (
            f"the model for {model.target} has another content",
            f"{model.path} has the digest {actual}.",
        )
        fix = "fetch the right model, or correct models[].digest in task.yaml"
        raise RunnerError("E402", what, why=why, fix=fix)
    return folder_files(model.path)


def _input_runs(job: Job, engine: Filled) -> list[Mount]:
    paths = input_run_paths([source.name for source in job.input_runs])
    mounts = []
    for source in job.input_runs:
        with ExitStack() as taken_out:  # of the archive, where a volume has to be filled
            volume = engine.data_volume(source.digest, partial(_output_files, source.attempt, taken_out))
        mounts.append(Mount(volume, paths[source.name]))
    return mounts


def _output_files(attempt: Attempt, taken_out: ExitStack) -> list[tuple[PurePosixPath, Path]]:
    return folder_files(taken_out.enter_context(attempt.output()))
