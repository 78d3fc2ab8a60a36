"""What an organiser does with many teams at once: all folders of submissions/, and one table of run files."""

from __future__ import annotations

import pytest

from tests.e2e.test_uploads_scored import run_text
from tests.worlds.mini import Project, cli


@pytest.mark.slow
def test_all_teams_are_checked_before_any_is_taken(live: Project) -> None:
    live.write_task(uploads=True, quota={"submissions": 5, "teams": {"none": 0}})
    live.software("good")
    live.software("more", team="none")
    live.software("crashes", "raise SystemExit(3)", team="beta")
    live.software("fine", team="beta")
    live.software("typo", team="gamma", imagee="x")
    entry = {"file": "bad.txt", "dataset": "dev"}
    live.run_files({"bad.txt": "dev-1 Q0\n"}, entry, team="delta", name="files")
    cli(live, "submit", "--all-teams", "--team", "alpha", expect=2)
    cli(live, "submit", expect=2)
    said = cli(live, "submit", "--all-teams", "--dry-run", "--no-check", "--json", expect=2)
    assert {row["software"]: row["state"] for row in said.json} == {
        "good": "fine", "fine": "fine", "crashes": "fine", "files": "fine", "more": "not taken",
    }  # fmt: skip
    assert cli(live, "runs", "--json").json == []

    said = cli(live, "submit", "--all-teams", expect=2)
    lines = {line.split(":")[0]: line for line in said.err.splitlines()}
    assert "imagee" in said.err and "run-error" in lines["beta/crashes"] and "bad.txt" in lines["delta/files"]
    assert said.err.index("none/more:") < said.err.index("E206")
    assert sorted(line.split()[:2] for line in said.out.splitlines()[1:] if "registered" in line) == [
        ["alpha", "good"],
        ["beta", "fine"],
    ]
    assert {r["software"] for r in cli(live, "runs", "--json").json} == {"good", "fine"}


@pytest.mark.slow
def test_a_table_of_runs_is_scored_as_any_run(live: Project) -> None:
    live.write_task(uploads=True)
    folder = live.home.parent / "handed-in"
    folder.mkdir()
    lines = ["team,run,file,dataset,description"]
    for n in range(6):
        (folder / f"{n}.txt").write_text(run_text("test", "t", n) if n else "test-1 Q0 doc-01 x y\n")
        lines.append(f"team-{n % 3},run-{n},{n}.txt,test,The run number {n}")
    (folder / "runs.csv").write_text("\n".join(lines))
    cli(live, "register", "--table", str(folder / "runs.csv"), "--task", "mini")
    said = cli(live, "evaluate", "--all")
    assert "6/6" in said.err and said.err.count(": invalid: ") == 1 and ": scored" not in said.err
    outcomes = {r["software"]: r["outcome"]["name"] for r in cli(live, "runs", "--json").json}
    assert outcomes == {"run-0": "invalid", **{f"run-{n}": "scored" for n in range(1, 6)}}
