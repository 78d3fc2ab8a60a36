"""HTTP to servers that need not be trusted. It imports requests: import it inside functions."""

from __future__ import annotations

import io
from collections.abc import Callable

import requests
import urllib3


class Session(requests.Session):  # noqa: TID251 - it is the one
    """A session that reads nothing of what a redirect brings along, and goes on to where it leads at most ``redirects`` times.

    That of requests reads and unpacks such a body whole, also where it is told not to follow: it may have no end.
    """

    def __init__(self, redirects: int = 0) -> None:
        super().__init__()
        self.max_redirects = redirects

    def get_redirect_target(self, resp: requests.Response) -> str | None:
        """Where an answer leads to; None where nobody goes there."""
        target = super().get_redirect_target(resp) if self.max_redirects else None
        if target is not None:
            resp.close()
        return target


def bounded(most: int) -> Callable[..., None]:
    """A hook for answers of streams: their bodies are read at once, unpacked, up to ``most`` bytes; a longer one is a RequestException."""

    def read(answer: requests.Response, **_: object) -> None:
        try:
            body = answer.raw.read(most + 1, decode_content=True)
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise requests.ConnectionError(f"the connection broke: {type(error).__name__}") from error
        finally:
            answer.close()
        if len(body) > most:
            raise requests.RequestException(f"an answer has more than {most} bytes")
        answer.raw = io.BytesIO(body)

    return read
