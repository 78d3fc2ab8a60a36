"""``tests/golden/archive/home``, which version 0.1 wrote, gives the exports of that version (``organiser.json``)."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from runner.records.store.connect import open_store
from runner.records.store.queries import runs
from runner.records.store.run_detail import detail
from runner.records.store.verify import verify
from runner.views.audience import ORGANISER, PUBLIC, Audience
from runner.views.leaderboard.export import FORMATS, export
from runner.views.leaderboard.table import build
from runner.views.redact import redact_run
from tests.worlds import records

GOLDEN = Path(__file__).parents[2] / "golden" / "archive"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return Path(shutil.copytree(GOLDEN / "home", tmp_path / "home"))


def said(home: Path, audience: Audience) -> dict[str, Any]:
    """All that ``audience`` gets to see of the runs and the leaderboard."""
    task, found = records.task(baseline=None), dict[str, Any]()
    with open_store(records.config(home.parent)) as store:
        for run in runs(store, [task]):
            whole = detail(store, run.id, [task])
            view = dict(redact_run(whole, audience, task.datasets[run.dataset]))
            if "inside" in view and view["inside"]["folder"]:
                view["inside"]["folder"] = view["inside"]["folder"].replace(str(home.parent), "")
            found[run.id] = view
        table = build(store, task, None, ORGANISER if audience is ORGANISER else PUBLIC)
        forms = sorted(FORMATS.keys() - {"tsv"})  # tsv is younger than the archive
        found |= {f"board {name}": export(table, name) for name in forms}
    # The looks of a page do not come from the archive.
    looks = r'<(style|script|svg)\b.*?</\1>|<meta http-equiv[^>]*>| stacked(?=")| data-head="[^"]*"'
    found["board html"] = re.sub(looks, "", found["board html"], flags=re.DOTALL)
    return found


def test_the_organiser_sees_what_version_0_1_said(home: Path) -> None:
    expected = json.loads((GOLDEN / "organiser.json").read_text("utf-8"))
    got = json.loads(json.dumps(said(home, ORGANISER), default=dict))
    assert got.keys() == expected.keys()
    for name, one in expected.items():
        if isinstance(one, dict):  # what later versions know beside it, they know nothing of here
            assert not any(got[name].pop(key) for key in got[name].keys() - one.keys()), name
        assert got[name] == one, name


def test_nothing_is_wrong_with_it(home: Path) -> None:
    assert verify(records.config(home.parent)).problems == ()


@pytest.mark.parametrize(
    ("team", "run"),
    [("alpha", "test"), ("beta", "test"), ("gamma", "test")],
    ids=["scored", "failed", "held"],
)
def test_a_team_sees_no_text_of_before_on_hidden_data(home: Path, team: str, run: str) -> None:
    task = records.task(baseline=None)
    with open_store(records.config(home.parent)) as store:
        (id,) = [r.id for r in runs(store, [task]) if r.submission.team == team and r.dataset == run]
        view = redact_run(detail(store, id, [task]), Audience("team", team), task.datasets[run])
    text = json.dumps(dict(view), default=dict)
    secrets = ("exit code 17", "of 60", "extra.txt", "NO_KEY", "annotators", "was cut")
    assert not any(word in text for word in secrets)
