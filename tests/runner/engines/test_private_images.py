"""Images of a registry that wants a password: pulled with what ``docker login`` left, refused without, and nobody is told of it."""

from __future__ import annotations

import secrets
from contextlib import suppress
from pathlib import Path

import pytest

from runner.engines.base import BuildSpec
from runner.engines.docker.engine import DockerEngine
from runner.model.errors import RunnerError
from runner.submissions.hints import of_pull
from tests.leftovers import KEPT
from tests.worlds.oci_registry import PASSWORD, Registry


@pytest.mark.engine
def test_a_private_image_is_pulled_by_who_signed_in(
    engine: DockerEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, context = tmp_path / "client", tmp_path / "context"
    monkeypatch.setenv("DOCKER_CONFIG", str(client))
    context.mkdir()
    (context / "Dockerfile").write_text("FROM scratch\nCOPY Dockerfile /\n")
    mark = secrets.token_hex(8)
    labels = {**KEPT, "registry-test": mark}
    image = engine.build(
        BuildSpec(context, tag=f"proctor-test/private:{mark}", timeout=300, labels=labels)
    ).id
    registry = Registry(tmp_path / "registry")
    registry.start()
    try:
        name = f"{registry.address}/alpha/one@{registry.push(engine, image, 'alpha/one')}"
        remove(engine, image)
        registry.start(password=True)
        with pytest.raises(RunnerError) as refused:
            engine.resolve(name)
        why, fix = of_pull(refused.value.why)
        assert refused.value.code == "E204" and why and "docker login" in fix
        registry.sign_in(client)
        assert engine.resolve(name).id == image, (
            "asked for anew each time, so that work need not be restarted"
        )
        remove(engine, image)
        (client / "config.json").write_text(
            (client / "config.json").read_text().replace(registry.secret, "eDp5")
        )
        with pytest.raises(RunnerError) as wrong:
            engine.resolve(name)
        said = f"{refused.value} {wrong.value} {wrong.value.why} {wrong.value.__cause__}"
        assert wrong.value.code == "E204" and not [one for one in (registry.secret, PASSWORD) if one in said]
    finally:
        registry.stop()
        remove(engine, image)


def remove(engine: DockerEngine, image: str) -> None:
    """Take an image from the engine, with all its names."""
    import docker.errors

    api = engine.clients.get()
    with suppress(docker.errors.ImageNotFound):
        api.remove_image(image, force=True)
