"""Leaderboards, what can be taken of them, and the softwares that stand in their rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar
from urllib.parse import urlencode

from runner.web.pages import environment, page
from runner.web.routes.base import Routes
from runner.web.routes.reading import unlisted
from runner.web.rules import EVERYBODY, Call, Rule

if TYPE_CHECKING:
    from starlette.responses import Response

    from runner.exchange.published import Object, View

T = TypeVar("T")

MEDIA = {
    "json": "application/json",
    "csv": "text/csv",
    "tsv": "text/tab-separated-values",
    "jsonl": "application/jsonl",
    "html": "text/html",
}  # of files, by their ending; others are text
MOST = 60  # characters of a word of a badge


class Boards(Routes):
    """Leaderboards and softwares."""

    def rules(self) -> tuple[Rule, ...]:
        """The routes of this class, each with its rule."""
        return (
            Rule("GET", "/tasks/{task}/softwares/{team}/{software}", self.software, EVERYBODY),
            Rule("GET", "/tasks/{task}/against/{row}/{table:path}", self.against, EVERYBODY),
            Rule("GET", "/tasks/{task}/{table:path}", self.board, EVERYBODY),
            Rule("GET", "/downloads/{file:path}", self.download, EVERYBODY),
            Rule("GET", "/badges/{task}/{table}.svg", self.badge, EVERYBODY),
            Rule("GET", "/badges/{task}/{table}/{team}/{software}.svg", self.badge, EVERYBODY),
        )

    async def board(self, call: Call) -> Response:
        """A leaderboard."""
        path = f"tasks/{call.at('task')}"
        task = self.object(call, path, "task")
        up = [(task.title, f"/{path}")] if task else []
        data = call.view.data(task) if task else {}
        table = call.at("table")
        head, _, name = table.rpartition("/")
        return self.piece(
            call,
            f"{path}/{table}",
            "board",
            up,
            _beside(data, path, table),
            api=f"/api/v1/{path}/{head}{'/' if head else ''}boards/{name}",
            badge="" if head else f"/badges/{call.at('task')}/{name}.svg",
            unlisted=unlisted(data),
        )

    async def against(self, call: Call) -> Response:
        """All rows of a leaderboard, tested against one of them."""
        task = self.object(call, f"tasks/{call.at('task')}", "task")
        at = f"tasks/{call.at('task')}/{call.at('table')}"
        names, board = tested(call, at, lambda one: one.replace("/", ".") == call.at("row"))
        if task is None or board is None:
            return self.nothing(call)
        name = next(one for one in names if one.replace("/", ".") == call.at("row"))
        measure = _deciding(board)
        return page(
            "against",
            call.visitor,
            call.published,
            title=f"All against {name}",
            up=[(task.title, f"/{task.path}"), (board["heading"] or board["table"], f"/{at}")],
            chosen=name,
            board=board,
            measure=measure,
            places=4 if measure.get("precision") is None else measure["precision"],
            rows=list(zip(names, board["rows"], strict=True)),
            way=(f"/{task.path}/against/", call.at("table")),
            # A file has no queries: a kept page has its data in that of the board.
            api=""
            if call.visitor.kept
            else f"/api/v1/{task.path}/boards/{call.at('table')}?{urlencode({'against': name})}",
            unlisted=unlisted(call.view.data(task)),
        )

    async def download(self, call: Call) -> Response:
        """A leaderboard as a file."""
        from starlette.responses import Response

        found = self.object(call, f"downloads/{call.at('file')}", "download")
        if found is None:
            return self.nothing(call)
        media = MEDIA.get(found.path.rpartition(".")[2], "text/plain")
        headers = {
            "Content-Disposition": f'attachment; filename="{found.title}"',
            "Cache-Control": "no-cache",
        }
        return Response(call.view.text(found), 200, headers, media)

    async def badge(self, call: Call) -> Response:
        """A leaderboard, or a software on it, as a small picture for other people's pages: always as everybody sees it."""
        from starlette.responses import Response

        public = self.door.published.view("public")
        found = public.get(f"tasks/{call.at('task')}/{call.at('table')}")
        board = _indexed(public, found) if found is not None and found.kind == "board" else None
        if board is None:
            return self.nothing(call)
        left, right = board.said["title"], f"{board.ranked} ranked"
        if "team" in call.request.path_params:
            name = call.at("team"), call.at("software")
            row = next(iter(board.of(*name)), None)
            if row is None:
                return self.nothing(call)
            left, right = "/".join(name), _standing(row, board)
        headers = {"Cross-Origin-Resource-Policy": "cross-origin", "Cache-Control": "public, max-age=300"}
        return Response(badge(left, right), 200, headers, "image/svg+xml")

    async def software(self, call: Call) -> Response:
        """A software: what its team says of it, where it stands, and those of its runs that the visitor may see."""
        name = call.at("team"), call.at("software")
        task = self.object(call, f"tasks/{call.at('task')}", "task")
        found, rows = stands(call, task, *name) if task else ([], [])
        if task is None or not (found or rows):
            return self.nothing(call)
        return page(
            "software",
            call.visitor,
            call.published,
            title="/".join(name),
            up=[(task.title, f"/{task.path}")],
            places=found,
            runs=rows[::-1],
            badges=[
                (at["title"], at["at"].replace("/tasks/", "/badges/", 1) + f"/{'/'.join(name)}.svg")
                for at in found
                if not at["round"]
            ],
            unlisted=unlisted(call.view.data(task)),
            api=f"/api/v1/{task.path}/softwares/{'/'.join(name)}",
            seen={one["run"] for one in rows}
            | {run for at in found for run in at["row"]["runs"] if call.view.get(f"runs/{run}")},
        )


def tested(call: Call, path: str, name: Callable[[str], bool]) -> tuple[list[str], dict[str, Any] | None]:
    """The names of a leaderboard's rows, in their order, and the leaderboard against the one that is meant, as ``runner leaderboard TASK
    --against RUN`` has it; None where nothing was published to test, or none is meant."""
    board, tests = call.view.get(path), call.view.get(f"against/{path}")
    if board is None or tests is None or tests.kind != "tests":
        return [], None
    each = _each(call.view, tests)
    if (meant := next(filter(name, each), None)) is None:
        return [*each], None
    data, one = call.view.data(board), json.loads(each[meant])
    compared = [said and dict(zip(one["fields"], said, strict=True)) for said in one["comparisons"]]
    rows = [row | {"comparison": c} for row, c in zip(data["rows"], compared, strict=True)]
    return [*each], {**data, "significance": one["significance"], "rows": rows, "notes": one["notes"]}


def badge(left: str, right: str) -> str:
    """A picture (SVG) of two words beside each other, as far as they have space."""
    left, right = left[:MOST], right[:MOST]
    widths = {"left_width": 12 + 7 * len(left), "right_width": 12 + 7 * len(right)}
    return environment().get_template("badge.svg").render(left=left, right=right, **widths)


class _Board(NamedTuple):
    """A leaderboard for whoever asks for single rows of it: what it says but for its rows (``said``), how many are ``ranked``, and
    each row as JSON by its team and software."""

    said: Mapping[str, Any]
    ranked: int
    rows: Mapping[tuple[str, str], Sequence[bytes]]

    def of(self, team: str, software: str) -> list[Mapping[str, Any]]:
        """The rows of a software."""
        return [json.loads(row) for row in self.rows.get((team, software), ())]


class Kept(Generic[T]):
    """What was made of the data of objects, by their digests: of the ``most`` that were asked for last."""

    def __init__(self, most: int) -> None:
        self._most, self._known = most, dict[str, T]()

    def of(self, view: View, of: Object, make: Callable[[Any], T]) -> T:
        """What ``make`` gives for the data of an object, which are read once as long as they stay the same."""
        found = self._known.pop(of.data, None)
        if found is None:
            found = make(view.data(of))
            while len(self._known) >= self._most:
                del self._known[next(iter(self._known))]
        self._known[of.data] = found
        return found


# There are as many pages of softwares, and of a leaderboard against a row, as rows; tests of all pairs grow with their square.
_BOARDS, _TESTS = Kept[_Board](64), Kept[dict[str, bytes]](16)


def _indexed(view: View, of: Object) -> _Board:
    """A leaderboard of a view."""

    def made(data: dict[str, Any]) -> _Board:
        rows: dict[tuple[str, str], list[bytes]] = {}
        for row in data.pop("rows"):
            rows.setdefault((row["team"], row["software"]), []).append(json.dumps(row).encode())
        return _Board(data, sum(map(len, rows.values())), rows)

    return _BOARDS.of(view, of, made)


def _each(view: View, of: Object) -> dict[str, bytes]:
    """What rows were tested by against each of them, as JSON by its name."""

    def made(data: dict[str, Any]) -> dict[str, bytes]:
        fields = {"fields": data["fields"]}
        return {one["name"]: json.dumps(one | fields).encode() for one in data["against"]}

    return _TESTS.of(view, of, made)


def _standing(row: Mapping[str, Any], board: _Board) -> str:
    """Rank and score of a row, in words."""
    measure = _deciding(board.said)
    score = row["scores"].get(measure["id"])
    places = 4 if measure.get("precision") is None else measure["precision"]
    figure = f" · {measure['measure']} {score['mean']:.{places}f}" if score else ""
    return f"rank {row['rank']} of {board.ranked}{figure}"


def _deciding(board: Mapping[str, Any]) -> Mapping[str, Any]:
    """The measure that a board is ranked by, or its first."""
    first = board["rank_by"] if isinstance(board["rank_by"], str) else ""
    found: Mapping[str, Any] = next(
        (one for one in board["measures"] if one["id"] == first), board["measures"][0]
    )
    return found


def _beside(task: Mapping[str, Any], path: str, here: str) -> list[list[tuple[str, str, str]]]:
    """The leaderboards of a task that are open with the same one in its rounds and, where one is over several cells, those of its
    cells: lists of title, address, and what it is to the page ``here`` (``aria-current``, or nothing); none with only one."""
    boards = {one["id"]: one for one in task.get("boards", ())}
    table = here.rpartition("/")[2]

    def whole(name: str) -> str:
        over = boards.get(name, {}).get("part_of")
        return over if over in boards else name

    over = whole(table)
    found = [(one["title"], name) for name, one in boards.items() if whole(name) == name]
    found += [
        (one["title"], f"rounds/{one['id']}/{table}")
        for one in task.get("rounds", ())
        if table in one["tables"]
    ]
    cells = [(one["title"], name) for name, one in boards.items() if name != over and whole(name) == over]
    cells = [(title.removeprefix(boards[over]["title"] + ": "), name) for title, name in cells]
    both = (found, {over: "true", here: "page"}), ([("All", over), *cells], {here: "page"})
    return [
        [(title, f"/{path}/{name}", current.get(name, "")) for title, name in row]
        for row, current in both
        if len(row) > 1
    ]


def stands(
    call: Call, task: Object, team: str, software: str
) -> tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]]:
    """Where a software stands, in the task's order of leaderboards, and the rows of those of its runs that the visitor may see."""
    order = [f"/{task.path}/{one['id']}" for one in call.view.data(task).get("boards", ())]
    found = sorted(
        _places(call, task.path, team, software),
        key=lambda one: order.index(one["at"]) if one["at"] in order else len(order),
    )
    runs = call.view.get("runs")
    rows = [
        one
        for one in (call.view.data(runs) if runs else [])
        if (one["team"], one["software"]) == (team, software) and f"tasks/{one['task']}" == task.path
    ]
    return found, rows


def _places(call: Call, task: str, team: str, software: str) -> Iterator[Mapping[str, Any]]:
    """Where a software stands: each leaderboard that the visitor may see, and its row there."""
    for one in call.view.below(f"{task}/"):
        if one.kind == "board":
            board = _indexed(call.view, one)
            data = board.said
            for row in board.of(team, software):
                best = _deciding(data)
                yield {
                    "at": f"/{one.path}",
                    "title": data["heading"] or data["table"],
                    "round": (data["round"] or {}).get("title"),
                    "row": row,
                    "of": board.ranked,
                    "measure": best,
                    "score": row["scores"].get(best["id"]),
                    "name": data.get("names", {}).get(f"{team}/{software}", ""),
                }
