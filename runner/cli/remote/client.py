"""Asking a server: over HTTP with the team's token, answers as JSON, and every failure an error that says what to do."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, quote, urlsplit

from runner.cli.remote.servers import Server, is_here
from runner.model.errors import CODES, Problem, RunnerError

if TYPE_CHECKING:
    from requests import Response

_NO_SERVER = "look whether the address is that of a server of this program"
API = ("api", "v1")
MOST_ENTRIES = 100_000  # of a list
CONNECT, READ = 20.0, 120.0  # seconds without any answer
MOST = 64 * 1024 * 1024  # bytes of an answer
MOST_WAITS, LONGEST_WAIT = (
    100,
    60,
)  # how often it is waited because the server says so, and for how many seconds at most
ASK_AGAIN = 2.0  # seconds between two questions whether a request is decided


class Client:
    """The connection to a server. The token is sent to its address alone: no redirect is followed, no ``.netrc`` asked."""

    def __init__(self, server: Server) -> None:
        import requests

        self.server = server
        self._http = requests.Session()
        self._http.auth = self._signed
        # The proxies of the environment are for servers elsewhere.
        self._http.trust_env = not is_here(str(urlsplit(server.url).hostname))

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def get(self, *parts: str) -> Any:
        """The data at a path of ``/api/v1``, given by its parts. Raises as :meth:`send`."""
        return _data(self.send("GET", *API, *parts))

    def find(self, *parts: str) -> Any:
        """The same, or None where nothing is there (yet: of a new team the server publishes its own first after seconds)."""
        try:
            return self.get(*parts)
        except RunnerError as error:
            if error.code != "E102":
                raise
            return None

    def all(self, *parts: str) -> list[Any]:
        """The entries of a list at a path of ``/api/v1``, of all its pages. Raises as :meth:`send`."""
        found: list[Any] = []
        after: dict[str, str] = {}
        while True:
            page = _data(self.send("GET", *API, *parts, params={"limit": "500", **after}))
            found += page["items"]
            if page["next"] is None or not page["items"] or len(found) > MOST_ENTRIES:
                return found
            after = {"after": parse_qs(urlsplit(page["next"]).query)["after"][0]}

    def post(self, *parts: str, **options: Any) -> Any:
        """Post something to a path of ``/api/v1``, and return the data of the answer. Raises as :meth:`send`."""
        return _data(self.send("POST", *API, *parts, **options))

    def send(self, method: str, *parts: str, fine: tuple[int, ...] = (), **options: Any) -> Response:
        """Send a request; returns an answer of 2xx, or of a status that is ``fine``. Where the server says in how many seconds it
        takes more, it is sent again then.

        Raises:
            RunnerError: E105 when the token opens nothing, what the server says (E102, E103, E106 …), E312 when it cannot be reached
                or fails.
        """
        import requests

        path = "/".join(quote(part, safe="") for part in parts)
        headers = {"Accept": "application/json", **options.pop("headers", {})}
        left = MOST_WAITS
        try:
            while True:
                said = self._http.request(
                    method,
                    f"{self.server.url}/{path}",
                    headers=headers,
                    allow_redirects=False,
                    timeout=(CONNECT, READ),
                    stream=True,
                    **options,
                )
                if (said.ok and not said.is_redirect) or said.status_code in fine:
                    return said
                wait, left = _wait(said), left - 1
                if not wait or not left:
                    raise self._refusal(said)
                said.close()
                time.sleep(wait)
        except requests.RequestException as error:
            raise self._failed(error) from error

    def decision(self, request: str, seconds: float | None = None) -> dict[str, Any] | None:
        """What became of a request; waits until it is decided, at most so many ``seconds`` (None: for ever), then None."""
        last = None if seconds is None else time.monotonic() + seconds
        while True:
            answer: dict[str, Any] | None = self.get("requests", request)["answer"]
            if answer is not None or (last is not None and time.monotonic() >= last):
                return answer
            time.sleep(ASK_AGAIN)

    def _signed(self, request: Any) -> Any:
        request.headers["Authorization"] = f"Bearer {self.server.token}"
        return request

    def _refusal(self, said: Response) -> RunnerError:
        """The error that a problem is (schemas/api-problem.schema.json), said by the server in words."""
        name, fix = self.server.name, "try again later" if said.status_code >= 500 else _NO_SERVER
        try:
            data = {key: str(value) for key, value in _data(said).items()}
        except (RunnerError, AttributeError):
            data = {}
        if said.status_code == 401:
            fix = f"runner login {self.server.url} with the token that holds now"
            return RunnerError(
                "E105", f"the token for {name} opens nothing", why=data.get("why", ""), fix=fix
            )
        what = f"{name}: {data.get('what', f'it did not take that (status {said.status_code})')}"
        code = data.get("code", "")
        known = code if code in CODES and code != "E308" else "E312"
        wait = said.headers.get("Retry-After", "")
        fix = f"try again in {wait} s" if wait.isdigit() else data.get("fix", fix)
        return RunnerError(known, what, why=data.get("why", ""), fix=fix)

    def _failed(self, error: Exception) -> RunnerError:
        what, why = f"{self.server.name} does not answer", f"{self.server.url}: {type(error).__name__}."
        return RunnerError(
            "E312", what, why=why, fix="look at the address and your connection, and try again"
        )


def refused(answer: Mapping[str, Any]) -> RunnerError:
    """The error that an answer is, which says that a request was refused: as the command on one machine gives it."""
    code = answer.get("code", "")
    problems = [Problem("", str(line)) for line in answer.get("problems", ())]
    what, why, fix = (str(answer.get(key, "")) for key in ("what", "why", "fix"))
    return RunnerError(code if code in CODES else "E312", what, why=why, fix=fix, problems=problems)


def _wait(said: Response) -> int:
    """In how many seconds a server takes more, as it says; 0 where it does not, or in too many."""
    text = said.headers.get("Retry-After", "")
    return int(text) if said.status_code == 429 and text.isdigit() and int(text) <= LONGEST_WAIT else 0


def _data(said: Response) -> Any:
    """The JSON data of an answer, which is bounded. Raises E312."""
    import json

    content = said.raw.read(MOST + 1, decode_content=True)
    try:
        if len(content) > MOST:
            raise ValueError
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        what = "the server answers with something else than it should"
        raise RunnerError("E312", what, fix=_NO_SERVER) from error
