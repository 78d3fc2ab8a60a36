"""The page of the Python interface, from the docstrings of :mod:`runner.api`."""

from __future__ import annotations

import inspect
import re

from runner import api
from tools.docs.tables import NOTE

INTRODUCTION = """
# Python interface

For notebooks and scripts: a data directory as [pandas](https://pandas.pydata.org) DataFrames, as one audience may see it.
A tutorial with its results: [analyse.ipynb](../tutorials/analyse.ipynb).

```python
from runner.api import open_home

home = open_home(".runner", "organiser")  # or "team:NAME", or "public"
board = home.leaderboard("vaswani")
```

A server gives the same from afar, for whom a token says ([its API](http-api.md)):

```python
from runner.api import connect

server = connect("https://task.example.org", token)  # without a token: for everybody
board = server.leaderboard("vaswani")
```

What the command line would not print for the same audience (option `--as`) is in no frame. That decides what is shown; it is
no lock: who can read the data directory can read all of it.

Text is escaped as on a terminal. Missing values are `<NA>`, `NaN` or `NaT`; times are in UTC. The columns of
`leaderboard` are those of `runner leaderboard --format csv`; columns of later versions may be added at any place.
"""


def frames() -> str:
    """The page ``api.md``."""
    seen: list[tuple[str, object]] = [("open_home", api.open_home), ("connect", api.connect)]
    seen += [
        (f"Home.{name}", method)
        for name, method in vars(api.Home).items()
        if inspect.isfunction(method) and not name.startswith("_")
    ]
    return (
        NOTE
        + INTRODUCTION
        + "".join(f"\n## `{name}{_signature(what)}`\n\n{_text(what)}\n" for name, what in seen)
    )


def _signature(what: object) -> str:
    """The parameters of a function without their types: ``(task, table=None)``."""
    given = inspect.signature(what).parameters.values()  # type: ignore[arg-type]
    shown = [str(one.replace(annotation=inspect.Parameter.empty)) for one in given if one.name != "self"]
    return f"({', '.join(shown)})"


def _text(what: object) -> str:
    """A docstring as Markdown: arguments as a list, code in single backticks."""
    doc = (inspect.getdoc(what) or "").replace("``", "`")
    doc = re.sub(r"(?m)^    +(\w+): ", r"- `\1`: ", doc)
    return re.sub(r"(?m)^        +", "  ", doc).replace("Args:\n", "Arguments:\n\n")
