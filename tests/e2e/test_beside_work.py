"""Commands that write, given while `runner work` runs: each is done, none waits for it, and pages follow."""

from __future__ import annotations

from runner.exchange.published import Published
from tests.e2e.test_server import until
from tests.worlds.mini import Project, call

COMMANDS = (
    ("team", "add", "beta"),
    ("account", "add", "assistant"),
    ("publish", "mini", "test"),
    ("unpublish", "mini", "test"),
    ("task", "pause", "mini"),
    ("task", "resume", "mini"),
    ("team", "rotate", "beta"),
    ("team", "close", "beta"),
    ("store", "verify"),
    ("evaluate", "--all", "--dry-run"),
)


def test_what_is_commanded_beside_work_is_done(project: Project) -> None:
    project.write_task(uploads=True)
    published = Published(project.config.exchange / "published")
    with project.start("work") as work:
        until(lambda: "public" in published.pointer())
        for command in COMMANDS:
            call(project, *command)
        assert "dataset-published" in (project.home / "events.jsonl").read_text()
        until(
            lambda: (
                (found := published.view("organiser").get("console"))
                and published.view("organiser").data(found)
            )
        )
        call(project, "store", "rebuild")
        call(project, "team", "add", "gamma")
        until(lambda: "team:gamma" in published.pointer())
        assert work.poll() is None
        work.terminate()
        out, err = work.communicate(timeout=60)
    assert "Traceback" not in out + err and work.returncode == 0, err
