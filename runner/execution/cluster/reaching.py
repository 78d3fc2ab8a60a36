"""Why a scheduler cannot be reached, in words that say what to correct."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import schemas

NOT_TAKEN = "failed to start"  # what Dask says where the scheduler does not take a worker
_REASONS: dict[type[BaseException], str] = {
    socket.gaierror: "no machine of that name is known",
    ConnectionRefusedError: "nothing listens there: start it by runner cluster scheduler",
    ssl.SSLCertVerificationError: "its certificate is not of the authority in ca.pem here ({})",
    ssl.SSLError: "TLS fails: both ends need certificates of one authority, and tls:// in the address",
    ConnectionResetError: "it breaks the connection off: its address begins with tls:// where it has certificates",
    TimeoutError: "nothing answers within some seconds: is that its address, and is no firewall between?",
}
ANSWERING = 5.0  # seconds within which a scheduler answers


def why_not(error: BaseException) -> str:
    """What kept us from a scheduler, of an error that Dask raised for it.

    Dask says that it timed out, or that a connection was closed; what happened stands in the errors that it tells of as causes.
    """
    for one in _chain(error):
        for kind, why in _REASONS.items():
            if isinstance(one, kind):
                return why.format(getattr(one, "verify_message", ""))
    if NOT_TAKEN in str(error):
        said = str(error.__cause__)
        if "name taken" in said:
            return "another host has this name (give this one --name), or is this one as it was before, for some seconds more"
        return f"this host is not taken: {schemas.show(said, 200)}"
    return f"what answers is no scheduler of this version ({type(error).__name__})"


async def unreachable(address: str, security: Any) -> str:
    """Why nothing can be had of the scheduler at an address now; empty where it answers."""
    from distributed.comm.core import connect

    options = security.get_connection_args("worker") if security is not None else {}
    try:
        connecting = connect(address, timeout=ANSWERING, **options)  # type: ignore[no-untyped-call]
        comm = await asyncio.wait_for(connecting, 2 * ANSWERING)  # it waits without an end for the first word
        await comm.close()
    except Exception as error:  # noqa: BLE001 - what is no scheduler says anything, and Dask raises anything for it
        # What it tries again until its time is over is not always among the causes.
        return await _not_there(address) or why_not(error)
    return ""


async def _not_there(address: str) -> str:
    """Why no connection at all can be had; empty where there is one."""
    place = urlsplit(address)
    try:
        opening = asyncio.open_connection(place.hostname, place.port)
        _, writer = await asyncio.wait_for(opening, ANSWERING)
        writer.close()
    except (TimeoutError, ConnectionRefusedError, socket.gaierror) as error:
        return why_not(error)
    except (OSError, UnicodeError) as error:
        return f"no connection can be had: {error}"
    return ""


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An error and what led to it."""
    found: BaseException | None = error
    while found is not None:
        yield found
        found = found.__cause__ or found.__context__
