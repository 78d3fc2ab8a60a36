"""Which clusters the settings name, and who does the steps of a plan with them."""

from __future__ import annotations

import ipaddress
import os
import posixpath
import re
import resource
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from runner.execution.cluster.roles import Role, role_of
from runner.execution.cluster.tails import FOLDER
from runner.execution.executors.local import LocalExecutor
from runner.execution.plan import Planned
from runner.execution.workspace import Workspace
from runner.model.config import Config, without_secrets
from runner.model.errors import RunnerError

if TYPE_CHECKING:  # what works with hosts is imported where there are any
    from runner.execution.cluster.duties import Duty
    from runner.execution.cluster.executor import ClusterExecutor
    from runner.execution.cluster.storage.stores import Stores

Say = Callable[[str], None]
_FAMILIES = {"file": "file", "local": "file", "s3": "s3", "s3a": "s3", "sftp": "sftp", "ssh": "sftp"}


@dataclass(frozen=True)
class Place:
    """A cluster of the settings, whose names begin with ``prefix``: what its hosts are for, its scheduler, and this machine's certificates there."""

    role: Role
    prefix: str
    address: str
    certificates: Path | None
    artefacts: str
    blinded: str | None = None

    def stores(self, credentials: Path | None) -> Stores:
        """Its artefact stores, opened by what stands in the file ``credentials``. Raises E101, E313."""
        from runner.execution.cluster.storage.stores import Stores, store_at

        blinded = store_at(self.blinded, credentials) if self.blinded else None
        return Stores(store_at(self.artefacts, credentials), blinded)

    def authorities(self) -> frozenset[bytes]:
        """The public keys of the authorities that it trusts; none without certificates. Raises E101 where the file holds none."""
        if self.certificates is None:
            return frozenset()
        from cryptography import x509
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        file = self.certificates / "ca.pem"
        try:
            keys = [one.public_key() for one in x509.load_pem_x509_certificates(file.read_bytes())]
            form = Encoding.DER, PublicFormat.SubjectPublicKeyInfo
            return frozenset(key.public_bytes(*form) for key in keys)
        except (OSError, ValueError, UnsupportedAlgorithm) as error:
            what, why = (
                f"{file} cannot be read as the certificate of an authority",
                f"{type(error).__name__}.",
            )
            fix = "make certificates anew: runner cluster certificates FOLDER HOST …"
            raise RunnerError("E101", what, why=why, fix=fix) from error


def places(config: Config) -> list[Place]:
    """The clusters of a configuration, checked; none where it names none.

    Raises E101 where a setting is missing, something would go over a network without TLS, or what evaluates is not apart from what
    executes software.
    """
    one, other = config.cluster, config.evaluation_cluster
    if one is None and other is None:
        return []
    from runner.execution.cluster.line import check_address, check_installed

    found = []
    if one is not None:
        stores = _artefacts(config.artefacts, "RUNNER_"), config.blinded_artefacts
        found.append(Place("software", "RUNNER_", one, config.certificates, *stores))
    if other is not None:
        prefix = "RUNNER_EVALUATION_"
        store = _artefacts(config.evaluation_artefacts, prefix)
        found.append(Place("evaluations", prefix, other, config.evaluation_certificates, store))
    for place in found:
        check_address(place.address, place.certificates)
    check_installed()
    if len(found) > 1:
        _apart(*found)
    return found


def _artefacts(address: str | None, prefix: str) -> str:
    if not address:
        raise RunnerError(
            "E101",
            f"{prefix}ARTEFACTS is not set",
            why="Hosts of a cluster are brought their data there.",
            fix=f"name a place that all its hosts reach: {prefix}ARTEFACTS=file:///srv/artefacts",
        )
    return address


def _apart(software: Place, evaluations: Place) -> None:
    """Raise E101 unless hosts that execute software have nothing in common with those that see truths."""
    why = "Hosts that execute software must not reach those that see truths, nor what they are brought."
    if _scheduler(software.address) == _scheduler(evaluations.address):
        what, fix = (
            "one scheduler is named for software and evaluations",
            "start another one: runner cluster scheduler",
        )
        raise RunnerError("E101", what, why=why, fix=fix)
    if software.authorities() & evaluations.authorities():
        what = "software and evaluations have certificates of one authority"
        fix = "make others in another folder: runner cluster certificates FOLDER HOST …"
        raise RunnerError("E101", what, why=why, fix=fix)
    theirs = evaluations.artefacts
    for ours in (software.artefacts, software.blinded):
        one, other = _spot(ours or theirs), _spot(theirs)
        if ours and one[: len(other)] == other[: len(one)]:
            what = f"{without_secrets(theirs)} and {without_secrets(ours)} are one artefact store, or one is in the other"
            fix = "name another one with credentials of its own: RUNNER_EVALUATION_ARTEFACTS"
            raise RunnerError("E101", what, why=why, fix=fix)


def _scheduler(address: str) -> tuple[str, int | None]:
    """Host and port of a scheduler, however its address is spelled."""
    place = urlsplit(address)
    return _host(place.hostname or ""), place.port


def _spot(address: str) -> tuple[str, ...]:
    """Where a store lies, however its address is spelled: kind of store, host or bucket, folders.

    Raises E101 for stores of other kinds: nobody can tell whether they are apart.
    """
    from fsspec.core import split_protocol, strip_protocol

    protocol, rest = split_protocol(address)
    family = _FAMILIES.get((protocol or "file").lower())
    if family == "file" and "::" not in address:
        path = os.path.realpath(strip_protocol(f"file://{rest}" if protocol else address))
        return (family, *filter(None, path.split("/")))
    try:
        place = urlsplit(f"{family}://{rest}")
        port = place.port
    except ValueError:
        family = None
    if family is None or "::" in re.sub(r"\[[^\]]*\]", "", address):  # an IPv6 address is no chain of stores
        what = f"{without_secrets(address)} cannot be told from other stores"
        why = "Hosts that evaluate have a store of their own, and only folders, S3 and SFTP can be compared."
        fix = "name a folder, s3:// or sftp:// for the stores of both clusters"
        raise RunnerError("E101", what, why=why, fix=fix)
    if family == "s3":  # s3fs strips leading slashes, so that s3:///bucket is s3://bucket
        bucket, _, key = rest.lstrip("/").partition("/")
        host, path = "", unquote(f"{bucket.rpartition('@')[2].lower()}/{key}")
    else:
        host, path = f"{_host(place.hostname or '')}:{22 if port is None else port}", unquote(place.path)
    return (family, host, *filter(None, posixpath.normpath(f"/{path}").split("/")))


def _host(name: str) -> str:
    """The name or address of a host in one form; this machine has one."""
    from runner.execution.cluster.line import LOOPBACK

    name = name.lower().rstrip(".")
    try:
        found = ipaddress.ip_address(name)
        name = str(getattr(found, "ipv4_mapped", None) or found)
    except ValueError:
        pass
    return LOOPBACK[0] if name in LOOPBACK else name


def over_hosts(
    config: Config, local: LocalExecutor, say: Say, *, only: str | None = None
) -> LocalExecutor | ClusterExecutor:
    """The executor of a configuration: this machine, and the clusters that it names, with all of their hosts or ``only`` one.

    Raises E101, E313.
    """
    named = places(config)
    if not named:
        return local
    from runner.execution.cluster.evaluations import Evaluations
    from runner.execution.cluster.executor import ClusterExecutor
    from runner.execution.cluster.line import Line
    from runner.execution.cluster.software import Software

    executor: LocalExecutor | ClusterExecutor = local
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    for place in named:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # each attempt under way keeps a lock open
        stores = place.stores(config.store_credentials)
        duty: Duty = Software(local, stores) if place.role == "software" else Evaluations(local, stores)
        line = Line(place.address, place.certificates, say)
        following = config.home / FOLDER if place.role == "software" else None
        executor = ClusterExecutor(executor, duty, line, say=say, following=following, only=only)
    return executor


def stays(config: Config, workspace: Workspace, planned: Planned) -> bool:
    """Whether a step is done on the coordinator's machine, as the settings are."""
    clusters = {"software": config.cluster, "evaluations": config.evaluation_cluster}
    role = role_of(workspace, planned)
    return role is None or clusters[role] is None
