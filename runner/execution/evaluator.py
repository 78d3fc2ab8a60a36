"""What evaluations of one task are made with: the evaluator's image, and the digests of what it is shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from runner.engines.base import Engine
from runner.model.container import ImageRef
from runner.model.errors import PlatformError, RunnerError
from runner.model.task import Dataset, Task
from runner.tasks.files import inputs_digest, truths_digest
from runner.tasks.request import with_data
from runner.tasks.services import data_digest


@dataclass(frozen=True)
class GatewaySetup:
    """What an evaluation needs when the evaluator may ask models: the image of the gateway, and known replies."""

    sidecars: ImageRef
    replies: Path | None = None


@dataclass(frozen=True)
class Evaluator:
    """The evaluator of one task: its image, whether that is the platform's, and the digests of what it is shown."""

    task: Task
    image: ImageRef
    default: bool
    digests: Mapping[str, Mapping[str, str]]  # dataset id -> {"inputs": …, "truths": …}
    gateway: GatewaySetup | None = None  # of a task whose evaluator may ask models
    services: Mapping[str, str] = field(default_factory=dict)  # the digests of the data of services

    @classmethod
    def of(
        cls,
        task: Task,
        datasets: Iterable[Dataset],
        engine: Engine,
        default_image: str,
        *,
        sidecars: str | None = None,
        replies: Path | None = None,
    ) -> Evaluator:
        """The evaluator of ``task`` for ``datasets``: the task's own image, or the platform's ``default_image``.

        Args:
            sidecars: the platform's image of the gateway.
            replies: the file of what models answered before.

        Raises:
            RunnerError: E304 when an image that it needs is missing, E402 when a dataset lacks files.
        """
        image = _image(engine, task, default_image)
        digests = {d.id: {"inputs": inputs_digest(d), "truths": truths_digest(d)} for d in datasets}
        gateway = None
        if task.evaluation_gateway is not None:
            if sidecars is None:
                raise no_sidecars(
                    f"The evaluator of {task.id} asks models through the gateway, a container of ours."
                )
            gateway = GatewaySetup(engine.resolve(sidecars), replies)
        return cls(task, image, task.evaluator_image is None, digests, gateway, services_digests(task))


def services_digests(task: Task) -> dict[str, str]:
    """The digests of the data of a task's services that its evaluator sees, by their names. Raises E402."""
    return {name: str(data_digest(service)) for name, service in with_data(task).items()}


def no_sidecars(why: str) -> RunnerError:
    """The error for work that needs the platform's image of sidecars, which is not there."""
    return RunnerError("E304", "our image of sidecars is not there", why=why, fix="run `make setup`")


def _image(engine: Engine, task: Task, default: str) -> ImageRef:
    name = task.evaluator_image or default
    try:
        return engine.resolve(name)
    except PlatformError:
        raise
    except RunnerError as error:
        why = "Evaluations run in a container of their own."
        fix = "make setup" if task.evaluator_image is None else f"build or pull {name}"
        raise RunnerError("E304", f"the evaluator image {name} is not there", why=why, fix=fix) from error
