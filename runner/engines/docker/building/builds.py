"""Build images: with the engine's builder, or isolated from everything else."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

from runner.engines.base import BuildSpec
from runner.engines.docker.building.builder import BuildLog, builder_limits, run_builder
from runner.engines.docker.client import TookTooLong, explanation
from runner.engines.docker.images import DockerImages
from runner.engines.turns import Turns
from runner.model.container import ImageRef
from runner.model.errors import PlatformError


class DockerBuilds(DockerImages):
    """See :class:`runner.engines.base.Images`."""

    turns: Turns

    def build(self, spec: BuildSpec, on_line: Callable[[str], None] | None = None) -> ImageRef:
        """Build an image with the engine's classic builder, or isolated, as ``spec`` says.

        Dockerfiles of teams that are not trusted need an isolated build. The context leaves out what ``.dockerignore``
        names and never follows a link. Raises E202 for a Dockerfile outside the folder, E203 with the
        last lines, E303 when the engine fails.
        """
        import docker.errors

        from runner.engines.docker.build_context import pack
        from runner.engines.docker.building.isolated import IsolatedBuild

        log = BuildLog(spec.tag or spec.context.name, on_line)
        attempt = f"build-{secrets.token_hex(6)}"
        # The steps of a Dockerfile can look at what is cached as well as any software, and their output is read here.
        turn = self.turns.take("public", attempt, building=True)
        try:
            with pack(spec.context, spec.dockerfile) as context, turn:
                if spec.isolated:
                    image = IsolatedBuild(self, spec, context, attempt, log).run()
                else:
                    image = run_builder(self.clients, context, self._arguments(spec), log, spec.timeout)
        except TookTooLong as error:
            raise log.failure(f"It was not done after {spec.timeout:g} s and was stopped.") from error
        except PlatformError as error:
            answer = error.__cause__
            if isinstance(answer, docker.errors.APIError) and (
                answer.is_client_error() or "dockerfile" in str(answer).lower()
            ):
                raise log.failure(f"The engine says: {explanation(answer)}.") from error
            raise
        return self.resolve(image)

    def _arguments(self, spec: BuildSpec) -> dict[str, Any]:
        # An engine that does not forward packets has a bridge that leads nowhere.
        network = "default" if self.raw.get("IPv4Forwarding", True) else "host"
        return {
            "dockerfile": spec.dockerfile,
            "tag": spec.tag,
            "target": spec.target,
            "buildargs": dict(spec.args),
            "labels": dict(spec.labels),
            "network_mode": network if spec.network else "none",
            "container_limits": builder_limits(spec),
        }
