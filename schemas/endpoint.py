"""Addresses of endpoints that answer with models' words: what one may look like before a key is sent there."""

from __future__ import annotations

import re
from ipaddress import ip_address
from urllib.parse import urlsplit

_ADDRESS = re.compile(r"[!-~]{1,500}")


def address_problems(url: str) -> list[str]:
    """What is wrong with the address of an endpoint, each continuing a sentence after its name; empty when nothing is.

    It is ``https``, or ``http`` to this machine and private networks, names a host, and holds neither credentials nor a
    query. The address is never repeated: a key may have been put into it.
    """
    if not _ADDRESS.fullmatch(url):
        return ["has characters that an address has not"]
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return ["is not an address"]
    if not host or port == 0 or parts.scheme not in ("http", "https"):
        problems = ["names no host, or does not start with https://"]
    elif parts.scheme == "http" and not is_private(host):
        problems = ["must be https: over http the key could be read on the way"]
    else:
        problems = []
    if "@" in parts.netloc:
        problems.append("holds credentials; a key has a place of its own")
    if "?" in url or "#" in url:
        problems.append("has a query or fragment")
    return problems


def is_private(host: str) -> bool:
    """Whether a host is this machine or in a private network: by its address, or a name without a dot or ``.internal``."""
    try:
        address = ip_address(host)
    except ValueError:
        return "." not in host or host.endswith(".internal")
    return address.is_private or address.is_loopback
