"""By which address people reach the front: the front notes it beside the requests, work reads it for links that organisers send.

It is the word of who faces the street, so work takes nothing from it but a plain address of a server.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from schemas.files import atomic_file

FILE = "address"
MOST = 300  # bytes
_PLAIN = re.compile(r"https?://(?:[A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?")


def note_address(inbox: Path, url: str) -> None:
    """Note the address of a front in its inbox. Raises OSError."""
    with atomic_file(inbox / FILE, mode=0o644) as file:
        file.write(f"{url.rstrip('/')}\n".encode())


def noted_address(inbox: Path) -> str | None:
    """The address that the front noted last; None where there is none, or what is there is no address."""
    text = (noted(inbox / FILE, MOST) or b"").decode("latin-1").strip()
    return text if _PLAIN.fullmatch(text) else None


def noted(path: Path, most: int) -> bytes | None:
    """What the front noted in a file, so many bytes of it; None where there is none that is plain."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        return file.read(most) if stat.S_ISREG(os.fstat(handle).st_mode) else None
