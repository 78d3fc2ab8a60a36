"""Asking a server: over HTTP with the team's token, answers as JSON, and every failure an error that says what to do."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, quote, urlsplit

import schemas
from runner.cli import output
from runner.cli.remote.servers import Server, is_here
from runner.exchange import answers
from runner.model.errors import CODES, Problem, RunnerError

if TYPE_CHECKING:
    from requests import Response

_NO_SERVER = "look whether the address is that of a server of this program, and of its version"
API = ("api", "v1")
LOCKED = 423  # another request has the upload; a connection that was cut may still be open at the server
CONNECT, READ = 20.0, 120.0  # seconds without any answer
_SHOWN = 1000  # characters of what a server says, at once
MOST_WAITS, LONGEST_WAIT = (
    100,
    60,
)  # how often it is waited because the server says so, and for how many seconds at most
# Commands that look at a server with --to, as a server's hints name them; not those that have it already.
_ASKING = re.compile(r"\brunner (?:runs|show|logs|status)\b(?! --to\b)")
ASK_AGAIN = 2.0  # seconds between two questions whether a request is decided
LOOK = 15.0  # seconds between two questions whether anybody decides there
GIVEN_UP = 600.0  # seconds for which nobody does until it is waited no longer


class Cut(RunnerError):
    """A failure (E312) that may be over at the next try: of the line, or of the server."""

    def __init__(self, what: str, *, why: str = "", fix: str = "try again") -> None:
        super().__init__("E312", what, why=why, fix=fix)


class Client:
    """The connection to a server. The token is sent to its address alone: no redirect is followed, no ``.netrc`` asked."""

    def __init__(self, server: Server) -> None:
        from runner.exchange.http import Session

        self.server = server
        self._http = Session()
        self._http.auth = self._signed
        # The proxies of the environment are for servers elsewhere.
        self._http.trust_env = not is_here(str(urlsplit(server.url).hostname))

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def get(self, gives: str, *parts: str, **query: str) -> Any:
        """The data at a path of ``/api/v1``, given by its parts, as the schema ``gives`` describes them. Raises as :meth:`send`."""
        return self.data(self.send("GET", *API, *parts, params=query), gives)

    def find(self, gives: str, *parts: str) -> Any:
        """The same, or None where nothing is there (yet: of a new team the server publishes its own first after seconds)."""
        try:
            return self.get(gives, *parts)
        except RunnerError as error:
            if error.code != "E102":
                raise
            return None

    def all(self, gives: str, *parts: str) -> list[Any]:
        """The entries of a list at a path of ``/api/v1``, of all its pages. Raises as :meth:`send`."""
        found: list[Any] = []
        after: list[str] = []
        while True:
            query = {"limit": "500", **({"after": after[0]} if after else {})}
            page = self.data(self.send("GET", *API, *parts, params=query), gives, paged=True)
            found += page["items"]
            after = parse_qs(urlsplit(page["next"] or "").query).get("after", [])
            if not after or not page["items"] or len(found) > answers.MOST_ENTRIES:
                return found

    def post(self, gives: str, *parts: str, **options: Any) -> Any:
        """Post something to a path of ``/api/v1``, and return the data of the answer. Raises as :meth:`send`."""
        return self.data(self.send("POST", *API, *parts, **options), gives)

    def send(self, method: str, *parts: str, fine: tuple[int, ...] = (), **options: Any) -> Response:
        """Send a request; returns an answer of 2xx, or of a status that is ``fine``. Where the server says in how many seconds it
        takes more, it is sent again then.

        Raises:
            RunnerError: E105 when the token opens nothing, what the server says (E102, E103, E106 …), E312 when it cannot be reached
                or fails.
        """
        import requests

        path = "/".join(quote(part, safe="") for part in parts)
        headers = {**answers.ACCEPT, **options.pop("headers", {})}
        left = MOST_WAITS
        try:
            while True:
                said = self._http.request(
                    method,
                    f"{self.server.url}/{path}",
                    headers=headers,
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

    @contextmanager
    def stream(self, url: str, headers: dict[str, str]) -> Iterator[Response]:
        """The answer to a GET at an address of the server, whatever it is, not read yet; no redirect is followed."""
        options: dict[str, Any] = {"stream": True, "timeout": (CONNECT, READ)}
        with self._http.get(url, headers=headers, **options) as answer:
            yield answer

    def decision(self, request: str, seconds: float | None = None) -> dict[str, Any] | None:
        """What became of a request; waits until it is decided, at most so many ``seconds`` (None: as long as somebody decides there),
        then None. That nobody does is said once. Raises as :meth:`get`, and E312 where nobody has for :data:`GIVEN_UP` seconds."""
        began = worked = looked = time.monotonic()
        told = False
        while True:
            answer: dict[str, Any] | None = self.get("api-request", "requests", request)["answer"]
            now = time.monotonic()
            if answer is not None or (seconds is not None and now >= began + seconds):
                return answer
            if now - looked >= LOOK:
                looked = now
                if self._somebody_works():
                    worked, told = now, False
                else:
                    self._nobody_works(now - worked, told)
                    told = True
            time.sleep(ASK_AGAIN)

    def _somebody_works(self) -> bool:
        """Whether work was heard of there lately, as far as the server says. Raises as :meth:`send`."""
        with self.send("GET", "healthz") as said:
            return b"nobody works" not in next(said.iter_content(1000), b"")

    def _nobody_works(self, seconds: float, told: bool) -> None:
        """Say so, unless it was ``told``. Raises E312 once it was so for too long."""
        what = f"nobody decides requests at {self.server.name} now"
        kept = "what was sent is kept there, with the time at which it came"
        if seconds >= GIVEN_UP:
            fix = f"write to its organiser, and look later: runner status --to {self.server.name}"
            raise RunnerError(
                "E312", what, why=f"runner work has ended there, or stands still; {kept}.", fix=fix
            )
        if not told:
            output.say(f"{what} (runner work has ended, or stands still); {kept}")

    def _signed(self, request: Any) -> Any:
        request.headers["Authorization"] = f"Bearer {self.server.token}"
        return request

    def data(self, said: Response, gives: str, *, paged: bool = False) -> Any:
        """The data of an answer, which are checked. Raises E312."""
        try:
            return answers.data(said, gives, paged=paged)
        except answers.Odd as odd:
            what = f"{self.server.name} answers with something else than it should"
            why = schemas.show(str(odd), _SHOWN)
            if isinstance(odd, answers.Cut):
                raise Cut(what, why=why) from None
            raise RunnerError("E312", what, why=why, fix=_NO_SERVER) from None

    def _refusal(self, said: Response) -> RunnerError:
        """The error that a problem is (schemas/api-problem.schema.json), said by the server in words."""
        name, fix = self.server.name, "try again later" if said.status_code >= 500 else _NO_SERVER
        try:
            data = answers.data(said, "api-problem")
        except answers.Odd:
            data = {}
        data = {key: schemas.show(str(value), _SHOWN) for key, value in data.items()} | {
            "problems": data.get("problems", ())
        }
        if said.status_code == 401:
            fix = f"runner login {self.server.url} with the token that holds now"
            return RunnerError(
                "E105", f"the token for {name} opens nothing", why=data.get("why", ""), fix=fix
            )
        what = f"{name}: {data.get('what', f'it did not take that (status {said.status_code})')}"
        code = data.get("code", "")
        if said.status_code == LOCKED or (said.status_code >= 500 and code != "E306"):
            return Cut(what, why=data.get("why", ""), fix=data.get("fix", fix))
        known = code if code in CODES and code != "E308" else "E312"
        wait = said.headers.get("Retry-After", "")
        fix = f"try again in {wait} s" if _is_number(wait) else from_here(data.get("fix", fix), name)
        return RunnerError(
            known, what, why=data.get("why", ""), fix=fix, problems=_problems(data["problems"])
        )

    def _failed(self, error: Exception) -> RunnerError:
        what, why = f"{self.server.name} does not answer", f"{self.server.url}: {type(error).__name__}."
        return Cut(what, why=why, fix="look at the address and your connection, and try again")


def refused(answer: Mapping[str, Any], name: str) -> RunnerError:
    """The error that an answer of the server ``name`` is, which says that a request was refused: as the command on one machine gives it,
    with commands that ask that server."""
    code = answer.get("code", "")
    what, why, fix = (schemas.show(str(answer.get(key, "")), _SHOWN) for key in ("what", "why", "fix"))
    return RunnerError(
        code if code in CODES else "E312",
        what,
        why=why,
        fix=from_here(fix, name),
        problems=_problems(answer.get("problems", ())),
    )


def from_here(text: str, name: str) -> str:
    """What a server says, with ``--to`` behind the commands that ask the server ``name`` then: it says them as they are beside it."""
    return _ASKING.sub(lambda found: f"{found[0]} --to {name}", text)


def _problems(lines: Iterable[str]) -> list[Problem]:
    return [Problem("", schemas.show(line, _SHOWN)) for line in lines]


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10


def _wait(said: Response) -> int:
    """In how many seconds a server takes more, as it says; 0 where it does not, or in too many."""
    text = said.headers.get("Retry-After", "")
    return int(text) if said.status_code == 429 and _is_number(text) and int(text) <= LONGEST_WAIT else 0
