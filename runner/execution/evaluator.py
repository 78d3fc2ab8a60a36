"""What evaluations of one task are made with: the evaluator's image, and the digests of what it is shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from runner.engines.base import Engine
from runner.execution.evaluation import GatewaySetup, evaluator_image
from runner.model.container import ImageRef
from runner.model.errors import RunnerError
from runner.model.task import Dataset, Task
from runner.tasks.files import inputs_digest, truths_digest


@dataclass(frozen=True)
class Evaluator:
    """The evaluator of one task: its image, whether that is the platform's, and the digests of what it is shown."""

    task: Task
    image: ImageRef
    default: bool
    digests: Mapping[str, Mapping[str, str]]  # dataset id -> {"inputs": …, "truths": …}
    beside: GatewaySetup | None = None  # of a task whose evaluator may ask models

    @classmethod
    def of(
        cls,
        task: Task,
        datasets: list[Dataset],
        engine: Engine,
        default_image: str,
        *,
        sidecars: str | None = None,
        replies: Path | None = None,
    ) -> Evaluator:
        """The evaluator of ``task`` for ``datasets``. Raises E304 when an image that it needs is missing.

        ``sidecars`` is the platform's image of the gateway, ``replies`` the file of what models answered before.
        """
        image = evaluator_image(engine, task, default_image)
        digests = {d.id: {"inputs": inputs_digest(d), "truths": truths_digest(d)} for d in datasets}
        beside = None
        if task.evaluation_gateway is not None:
            if sidecars is None:
                raise RunnerError(
                    "E304",
                    "our image of sidecars is not there",
                    why=f"The evaluator of {task.id} asks models through the gateway, a container of ours.",
                    fix="run `make setup`",
                )
            beside = GatewaySetup(engine.resolve(sidecars), replies)
        return cls(task, image, task.evaluator_image is None, digests, beside)
