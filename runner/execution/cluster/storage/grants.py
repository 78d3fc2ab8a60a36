"""Grants: addresses that open what one order needs, and nothing else, until they expire.

The coordinator makes them where its store can sign (S3 and what is compatible). A host that works by grants holds nothing that
opens a store: it reads and writes by plain HTTP, at the origins that it was told and nowhere else.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import requests

from runner.exchange.http import Session
from runner.execution.cluster.storage.delivery import MANIFEST, PACK, Pack, receive, sealed
from runner.model.errors import PlatformError, RunnerError
from runner.records.contents import Content

LONGEST = 7 * 86400  # seconds for which S3 signs at most
LOOPBACK = ("127.0.0.1", "localhost", "::1")
_SILENCE = (10, 60)  # seconds for a connection, and between two pieces
_CODE = re.compile(rb"<Code>([A-Za-z]{1,60})</Code>")


class Store(Protocol):
    """What a host does with a store."""

    place: str

    def fetch(self, content: Content, target: Path) -> None:
        """Write a content to the new file ``target``. Raises E306, E313."""

    def deliver(self, name: str, files: Mapping[str, Path], facts: Mapping[str, Any], key: bytes) -> None:
        """Lay down the files of an attempt, and then its manifest, signed by ``key``. Raises E313."""


@dataclass(frozen=True)
class Grants:
    """Signed addresses: to read contents by their SHA-256, and to write the two files of a delivery. Secret as long as they hold."""

    read: Mapping[str, str] = field(default_factory=dict, repr=False)
    write: Mapping[str, str] = field(default_factory=dict, repr=False)


def origin(address: str) -> str:
    """``address`` as the begin of addresses there: scheme, host and port. Raises E101 where it has more, or TLS would be missing."""
    try:
        parts = urlsplit(address)
        plain = parts.scheme == "http" and parts.hostname in LOOPBACK
        fine = bool(parts.hostname) and parts.port != 0 and (parts.scheme == "https" or plain)
        fine = fine and "@" not in parts.netloc and parts.path in ("", "/") and not parts.query
    except ValueError:
        fine = False
    if not fine:
        what = "that is no origin of a store"
        why = "Grants go there: it is https, a host, perhaps a port, and no more."
        fix = "name it as in addresses that the store signs: https://s3.example.org or https://BUCKET.s3.example.org"
        raise RunnerError("E101", what, why=why, fix=fix)
    return f"{parts.scheme}://{parts.netloc}"


class Granted:
    """A store as a host has it by ``grants`` alone, at these ``origins``. Used by several threads.

    Raises E313 where it cannot be read or written; no error says anything of the addresses.
    """

    def __init__(self, place: str, origins: Sequence[str], grants: Grants = Grants()) -> None:
        self.place, self._origins, self._grants = place, tuple(origins), grants
        logging.getLogger("urllib3").setLevel(logging.CRITICAL)  # it says whole addresses

    def by(self, grants: Grants) -> Granted:
        """The same store by other grants."""
        return Granted(self.place, self._origins, grants)

    def fetch(self, content: Content, target: Path) -> None:
        """See :class:`Store`."""
        with self._answer("GET", self._grants.read.get(content.sha256)) as answer:
            receive(
                lambda size: bytes(answer.raw.read(size, decode_content=False)),
                content.sha256,
                [(target, content)],
            )

    def deliver(self, name: str, files: Mapping[str, Path], facts: Mapping[str, Any], key: bytes) -> None:
        """See :class:`Store`; under the name that the grants are for."""
        for file, data in ((PACK, Pack(files)), (MANIFEST, sealed(files, facts, key))):
            # requests would send a body of no length in chunks, which S3 refuses.
            with self._answer("PUT", self._grants.write.get(file), data=data if len(data) else b""):
                pass

    @contextmanager
    def _answer(self, method: str, url: str | None, data: Any = None) -> Iterator[requests.Response]:
        """What the store says, where it says that all is well. Whatever else happens is E313."""
        if url is None or not any(url.startswith(f"{one}/") for one in self._origins):
            raise self._away(
                "Nothing grants it." if url is None else "What grants it leads to another origin."
            )
        try:
            with Session() as session:
                # Neither a proxy nor a password of this machine is for the store.
                session.trust_env = False
                session.verify = os.environ.get("REQUESTS_CA_BUNDLE") or True
                plain = {"Accept-Encoding": "identity"}
                with session.request(
                    method,
                    url,
                    data=data,
                    headers=plain,
                    timeout=_SILENCE,
                    stream=True,
                ) as answer:
                    if answer.status_code != 200:
                        said = _CODE.search(answer.raw.read(2000, decode_content=False) or b"")
                        code = f" ({said[1].decode()})" if said else ""
                        raise self._away(f"It answers {answer.status_code}{code}.")
                    yield answer
        except PlatformError:
            raise
        except Exception as error:  # noqa: BLE001 - its text has the address
            raise self._away(f"{type(error).__name__}.") from None

    def _away(self, why: str) -> PlatformError:
        what = f"the artefact store {self.place} cannot be used by what was granted"
        fix = "see that it is there, that clocks are right, and that --store-origin is what it signs for"
        return PlatformError(what, why=why, fix=fix, code="E313")
