"""One table of many teams' run files: all or nothing, every problem with its line, and the same table again takes only news."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runner.model.errors import RunnerError
from runner.records.store.connect import open_store
from runner.records.store.queries import submissions
from runner.submissions.pack import write
from runner.submissions.register import register_all
from runner.submissions.table import read_table
from runner.tasks.load import load_task
from schemas.file_sorts import find_wrong_sort
from tests.worlds.mini import Project, Said, call_here

HEADER = "team,run,file,dataset,method,description"
ROW = "alpha,bm25,sub/c.txt,test,automatic,Dual"
Call = Callable[..., Said]


def run_text(tag: str) -> str:
    return "".join(f"test-{t} Q0 doc-{r:02} {r} {20 - r} {tag}\n" for t in (1, 2, 3) for r in range(1, 6))


@pytest.fixture
def folder(project: Project, tmp_path: Path) -> Path:
    """A folder with three run files, and a task that takes run files; nothing needs an engine."""
    project.write_task(uploads=True, quota={"submissions": 3, "teams": {"small": 1}})
    made = tmp_path / "handed-in"
    (made / "sub").mkdir(parents=True)
    for name in ("a.txt", "b.txt", "sub/c.txt"):
        (made / name).write_text(run_text(name[-5]))
    return made


@pytest.fixture
def cli(project: Project, capsys: pytest.CaptureFixture[str]) -> Call:
    def one(*arguments: str, expect: int = 0) -> Said:
        said = call_here(project, arguments, capsys)
        assert said.code == expect, said.all
        return said

    return one


@pytest.fixture
def take(cli: Call, folder: Path) -> Call:
    """Write a table and register it; the lines come after the usual header unless they are bytes."""

    def one(*lines: str, raw: bytes | None = None, expect: int = 0, options: tuple[str, ...] = ()) -> Said:
        table = folder / "runs.csv"
        table.write_bytes(raw if raw is not None else ("\n".join([HEADER, *lines]) + "\n").encode())
        said = cli("register", "--table", str(table), "--task", "mini", *options, expect=expect)
        if expect == 2:
            assert said.out == "" and "docs/reference/errors.md#e214" in said.err, said.err
            assert cli("runs", "--json").json == [], "nothing was taken"
        return said

    return one


def _registered(cli: Call) -> list[tuple[str, str, str, str]]:
    runs = cli("runs", "--json").json
    return sorted((r["team"], r["software"], r["dataset"], r["method"]) for r in runs)


def test_a_repeated_table_adds_new_lines(project: Project, cli: Call, folder: Path, take: Call) -> None:
    lines = [
        "alpha,bm25,a.txt,test,,",
        'beta,dense,b.txt,test,manual,"Two stages, both by hand"',
        'beta,dense,sub/c.txt,dev,manual,"Two stages, both by hand"',
    ]
    said = take(*lines)
    assert "receipt: event" in said.err
    assert [line.split()[:2] for line in said.out.splitlines()[1:]] == [["alpha", "bm25"], ["beta", "dense"]]
    assert _registered(cli) == [
        ("alpha", "bm25", "test", "automatic"),
        ("beta", "dense", "dev", "manual"),
        ("beta", "dense", "test", "manual"),
    ]
    said = take(*lines, "gamma,new,a.txt,test,,", options=("--json",))
    assert [row["state"].split()[-1] for row in said.json] == ["already", "already", "registered"]
    assert len(_registered(cli)) == 4
    kept = list((project.home / "submissions").glob("beta.dense.*/bundle"))
    assert len(kept) == 1 and json.loads((kept[0] / "submission.yaml").read_text())["method"] == "manual"
    assert not list((project.home / "bundles").iterdir()), "nothing is left beside what is kept"


def test_every_problem_is_said_with_its_line_before_anything_is_taken(
    folder: Path, take: Call, golden: Callable[[str, str], None]
) -> None:
    (folder / "link.txt").symlink_to("/etc/hostname")
    os.mkfifo(folder / "pipe.txt")
    outside = folder.parent / "outside.txt"
    outside.write_text("x")
    said = take(
        "alpha,good,a.txt,test,,",
        "Not A Name,x,a.txt,test,,",
        "alpha,two,gone.txt,test,,",
        "alpha,three,../outside.txt,test,,",
        f"alpha,four,{outside},test,,",
        "alpha,five,link.txt,test,,",
        "alpha,six,pipe.txt,test,,",
        "alpha,seven,sub,test,,",
        "alpha,eight,a.txt,tset,,",
        "alpha,nine,a.txt,,,",
        "alpha,ten,a.txt,test,by hand,",
        "alpha,good,b.txt,test,,",
        "alpha,good,b.txt,dev,manual,",
        "public,x,a.txt,test,,",
        "small,one,a.txt,test,,",
        "small,two,b.txt,test,,",
        "alpha,,a.txt,test,,",
        expect=2,
    )
    lines = {n: [x for x in said.err.splitlines() if f"runs.csv:{n}:" in x] for n in range(2, 19)}
    assert {n for n, found in lines.items() if found} == {*range(3, 19)} - {16}
    golden("table-problems.txt", re.sub('"/[^"]*"', '"/PATH"', said.err))


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"", ["runs.csv:1: "]),
        (b"team,run,file\n", ["runs.csv:1: "]),
        (b"team,run,fiel,descripton,team\n", ['"fiel"', '"file"', '"description"', '"team"']),
        (b"team,run,file,dataset\nalpha,x,a.txt\x00,test\n", ["runs.csv:2", "NUL"]),
        (b"team,run,file,dataset\nalpha,x,\xe4.txt,test\n", ["runs.csv:2", "UTF-8"]),
        ("team,run,file\n".encode("utf-16"), ["UTF-16"]),
        (b"team,run,file,dataset\nalpha,\x1b[2Jx,a.txt,test\n", ["runs.csv:2", "\\x1b[2Jx"]),
        ("team,run,file,dataset\nalpha,x\u202ey,a.txt,test\n".encode(), ["runs.csv:2", "\\u202e"]),
        (b'team,run,file,dataset\nalpha,"x,a.txt,test\n', ["runs.csv:2", "CSV"]),
        (b"team,run,file,dataset\nalpha,x,a.txt,test,more\n", ["runs.csv:2", "5 ", " 4"]),
        (b"team,run,file,dataset\n=1+1,x,a.txt,test\n", ["runs.csv:2", "=1+1"]),
        (b"team,run,file,dataset\n" + b"x" * (5 << 20), ["4 MiB"]),
        (b"\xff" * 100, ["UTF"]),
    ],
)  # fmt: skip
def test_what_is_no_table(raw: bytes, words: list[str], take: Call) -> None:
    said = take(raw=raw, expect=2)
    for word in words:
        assert word in said.err, said.err
    assert said.err.startswith("E214  ") and "\u202e" not in said.all


def test_tables_as_spreadsheets_write_them(project: Project, cli: Call, take: Call) -> None:
    """A byte order mark, semicolons or tabs, line ends of Windows, a description of several lines, columns in any order."""
    take(
        raw='\ufeffFile;Team;Run;Dataset;Description\r\na.txt;alpha;one;test;"first\r\nsecond"\r\n;;;;\r\n'.encode()
    )
    take(raw=b"team\trun\tfile\tdataset\nalpha\ttwo\tsub/c.txt\ttest\n")
    assert [row[1] for row in _registered(cli)] == ["one", "two"]
    [bundle] = (project.home / "submissions").glob("alpha.one.*/bundle/bundle.json")
    assert json.loads(bundle.read_text())["description"] == "first second"


def test_a_description_is_text_and_never_a_formula(project: Project, cli: Call, take: Call) -> None:
    take('alpha,x,a.txt,test,,"=HYPERLINK(""http://x"",1)"')
    [bundle] = (project.home / "submissions").glob("alpha.x.*/bundle/bundle.json")
    assert json.loads(bundle.read_text())["description"].startswith("=HYPERLINK")
    for row in cli("leaderboard", "mini", "--format", "csv").out.splitlines():
        assert not any(cell.lstrip('"').startswith("=") for cell in row.split(","))


def test_a_dry_run_takes_nothing(cli: Call, take: Call) -> None:
    said = take("alpha,x,a.txt,test,,", options=("--dry-run", "--json"))
    assert len(said.json) == 1 and said.json[0]["state"] != "registered" and _registered(cli) == []


@pytest.mark.slow
def test_a_check_takes_nothing(live: Project, folder: Path, take: Call) -> None:
    (folder / "b.txt").write_text("dev-1 Q0 doc-01\n")
    said = take("alpha,x,a.txt,test,,", "alpha,y,b.txt,dev,,", expect=2, options=("--check",))
    assert "2/2" in said.err
    assert "runs.csv:3: b.txt:1: F" in said.err and "runs.csv:2" not in said.err


def test_files_of_strangers_are_checked_in_a_container_or_not_at_all(
    project: Project, cli: Call, folder: Path
) -> None:
    """Where no engine answers, they are not read by a process of the organiser's instead."""
    project.docker_host = "unix:///nowhere.sock"
    (folder / "runs.csv").write_text(f"{HEADER}\nalpha,x,a.txt,test,,\n")
    table = ("register", "--table", str(folder / "runs.csv"), "--task", "mini")
    assert "E301" in cli(*table, "--check", expect=3).err
    assert cli("runs", "--json").json == []
    cli(*table)  # which needs none


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--table", "runs.csv"], "E101"),
        (["--table", "runs.csv", "--task", "mini", "bundle"], "E101"),
        (["--table", "runs.csv", "--task", "nope"], "E102"),
        (["--table", "gone.csv", "--task", "mini"], "E102"),
        (["--task", "mini"], "E101"),
        ([], "E101"),
    ],
)
def test_what_is_asked_for(arguments: list[str], code: str, cli: Call) -> None:
    assert code in cli("register", *arguments, expect=2).err


def test_a_task_that_takes_no_run_files(project: Project, take: Call) -> None:
    project.write_task()
    said = take("alpha,x,a.txt,test,,", expect=2)
    assert all(
        word in said.err for word in ("E214", 'runs.csv:1: the task "mini"', "runs.csv:2: the task mini")
    )


def test_a_failure_in_the_middle_takes_nothing(project: Project, folder: Path) -> None:
    """The third bundle cannot be copied: the first two are not registered either, and nothing of them is left."""
    table = folder / "runs.csv"
    table.write_text("team,run,file,dataset\n" + "".join(f"alpha,r{n},a.txt,test\n" for n in range(3)))
    task = load_task(project.config, "mini")
    read = read_table(table, task, project.home / "scratch")
    read.refuse()
    folders = []
    for n, one in enumerate(read.submissions):
        bundle = write(one, None, project.home / f"b{n}", engine=None, check=None, with_archive=False)
        folders.append(bundle.folder)
    blocked = project.config.registered / f"{bundle.submission_id}"
    blocked.parent.mkdir(parents=True)
    blocked.write_text("a file where the folder should be")
    with open_store(project.config) as store:
        arguments: Any = (project.config, store, None, {"mini": task}, folders)
        with pytest.raises(RunnerError, check=lambda error: error.code == "E306"):
            register_all(*arguments)
        assert submissions(store) == [] and [p.name for p in blocked.parent.iterdir()] == [blocked.name]
        blocked.unlink()
        assert [receipt.new for receipt in register_all(*arguments)] == [True, True, True]


def test_names_and_display_names_as_teams_have_them(cli: Call, take: Call) -> None:
    """From the table to the list of runs nothing changes them; what cannot be told apart is refused by its line."""
    head = "team,run,file,dataset,display_name,team_display_name\n"
    good = "TeamA_v2.1,webis_run-1.0,a.txt,test,=SUM(1),Grünfeld & Söhne <b>\n"
    wrong = (
        "teamA_v2.1,x,a.txt,test,,\n"
        "TeamA_v2.1,Webis.run-1.0,a.txt,test,,\n"
        "other,x,a.txt,test,,GRÜNFELD & Söhne <b>\n"
        "third,x,a.txt,test,a\u202eb,\n"
    )
    said = take(raw=(head + good + wrong).encode(), expect=2)
    for line, word in ((3, "TeamA_v2.1"), (4, "webis_run-1.0"), (5, "other"), (6, "display_name")):
        assert any(f"runs.csv:{line}:" in one and word in one for one in said.err.splitlines()), said.err
    take(raw=(head + good).encode())
    [row] = cli("runs", "--json").json
    assert (row["team"], row["software"]) == ("TeamA_v2.1", "webis_run-1.0")
    assert (row["display_name"], row["team_display_name"]) == ("=SUM(1)", "Grünfeld & Söhne <b>")
    assert row["run"].startswith("teama_v2_1.webis_run-1_0.")
    shown = cli("show", "TeamA", "--as", "team:TeamA_v2.1")
    assert "called:" in shown.out and "Grünfeld & Söhne <b>: =SUM(1)" in shown.out

    cli("name", "TeamA_v2.1", "Webis")
    cli("name", "TeamA_v2.1", "", "--software", "webis_run-1.0")
    [row] = cli("runs", "--json").json
    assert row["team_display_name"] == "Webis" and "display_name" not in row
    assert "E102" in cli("name", "teama", "x", expect=2).err
    assert "E208" in cli("name", "TeamA_v2.1", "a\nb", expect=2).err
    assert "TeamA_v2.1" in cli("extend", "mini", "TeamA_V2.1", "-n", "1", expect=2).err
    assert "4 submissions" in cli("extend", "mini", "TeamA_v2.1", "-n", "1").err


def test_a_team_has_one_display_name_in_a_table(take: Call) -> None:
    """Of two the last would count, whatever the order of the lines."""
    head = "team,run,file,dataset,team_display_name\n"
    lines = "alpha,x,a.txt,test,Alpha\nalpha,y,b.txt,test,\nalpha,z,b.txt,dev,Alpha Lab\n"
    said = take(raw=(head + lines).encode(), expect=2)
    assert "runs.csv:4" in said.err and '"alpha"' in said.err and "line 2" in said.err


@pytest.mark.parametrize(
    "raw",
    [
        f"{HEADER},,,\r\n{ROW},,,\r\n,,,,,,,,\r\n",
        "sep=;\r\n" + f"{HEADER}\r\n{ROW}\r\n".replace(",", ";"),
        f'\ufeff"sep=,"\r\n{HEADER}\r\n{ROW}\r\n',
        "sep=\t\n" + f"{HEADER}\n{ROW}\n".replace(",", "\t"),
        f"{HEADER}\n{ROW}\n".replace("sub/", "sub\\"),
        HEADER + '\n"alpha","bm25","sub\\c.txt","test","automatic","Dual"\n\n\n',
    ],
)
def test_tables_are_read_as_spreadsheets_write_them(take: Call, raw: str) -> None:
    said = take(raw=raw.encode(), options=("--dry-run", "--json"))
    assert [(row["team"], row["software"]) for row in said.json] == [("alpha", "bm25")]


def test_a_cell_under_no_column_is_a_problem_of_its_line(take: Call) -> None:
    raw = b"sep=,\n" + HEADER.encode() + b",,\nalpha,bm25,a.txt,test,automatic,Dual, tuned,\n"
    assert "runs.csv:3" in take(raw=raw, expect=2).err


@pytest.mark.parametrize("name", ["a" * 300, "a\0b"])
def test_a_path_that_no_file_can_have_is_a_missing_file(take: Call, name: str) -> None:
    raw = f"{HEADER}\nalpha,bm25,sub\\{name}.txt,test,automatic,Dual\n"
    assert "runs.csv:2" in take(raw=raw.encode(), expect=2).err


@pytest.mark.parametrize(
    "raw", [b"PK\x03\x04", b"\xfd7zXZ\0", f"{HEADER}\n".encode("utf-16-le"), b"<!doctype html>"]
)
def test_a_table_of_another_sort_is_one_error(take: Call, raw: bytes) -> None:
    assert str(find_wrong_sort(raw).name) in take(raw=raw, expect=2).err  # type: ignore[union-attr]
