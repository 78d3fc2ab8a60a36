"""The files for Kubernetes have the form that its schemas ask for, and say of security what the guide says. They are not applied to anything."""

from __future__ import annotations

from typing import Any

import kubernetes_validate
import pytest
import yaml

from tests.worlds.cluster import ROOT

FILES = sorted((ROOT / "deploy" / "kubernetes").glob("*.yaml"))
DOCUMENTS = [
    pytest.param(document, id=f"{path.name}-{document['kind']}")
    for path in FILES
    for document in yaml.safe_load_all(path.read_text())
]


@pytest.mark.parametrize("document", DOCUMENTS)
@pytest.mark.parametrize("version", ["1.30", "1.37"])
def test_the_form_is_that_of_kubernetes(document: dict[str, Any], version: str) -> None:
    """Also no key that its schemas do not know."""
    kubernetes_validate.validate(document, version, strict=True)


def test_a_key_that_is_none_is_found() -> None:
    broken = DOCUMENTS[0].values[0] | {"specs": {}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(broken, "1.37", strict=True)


def test_no_pod_may_do_more_than_it_needs() -> None:
    """Pods have no account of the cluster and no privileges; only a worker has the engine of its node."""
    pods = {one.values[0]["metadata"]["name"]: one.values[0]["spec"]["template"]["spec"] for one in DOCUMENTS
            if one.values[0]["kind"] in ("Deployment", "DaemonSet")}  # fmt: skip
    assert set(pods) == {"proctor-scheduler", "proctor-worker"}
    for pod in pods.values():
        assert pod["automountServiceAccountToken"] is False and not pod.get("hostNetwork")
        for container in pod["containers"]:
            assert container["securityContext"]["allowPrivilegeEscalation"] is False
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
            assert not container["securityContext"].get("privileged")
    assert "hostPath" not in str(pods["proctor-scheduler"])
