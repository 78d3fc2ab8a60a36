"""``published/``: what a reader sees while it is replaced, and that only what changed changes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.exchange.pieces import keep
from runner.exchange.published import KEPT_SECONDS, Damaged, Published, Publisher


def names(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


def test_each_audience_sees_its_own_objects_and_nothing_of_others(tmp_path: Path) -> None:
    to = Publisher(tmp_path)
    assert Published(tmp_path).view("public").get("tasks") is None
    mine = to.object("runs/a", "run", "a", {"run": "a"}, "<p>a</p>")
    to.publish({"public": [to.object("tasks", "tasks", "Tasks", [])], "team:a": [mine], "team:b": []})
    seen = Published(tmp_path)
    view = seen.view("team:a")
    found = view.get("runs/a")
    assert found is not None and view.data(found) == {"run": "a"} and view.text(found) == "<p>a</p>"
    assert [one.path for one in view.below("runs/")] == ["runs/a"]
    for other in ("public", "team:b", "team:unknown", "../../x"):
        assert seen.view(other).get("runs/a") is None
    assert seen.view("team:unknown").get("tasks") is not None, "who has just come sees what everybody sees"


@pytest.fixture
def closed_to_others() -> Iterator[None]:
    """As the unit of work has it, and stricter."""
    before = os.umask(0o077)
    yield
    os.umask(before)


@pytest.mark.usefixtures("closed_to_others")
def test_what_is_published_is_open_to_the_front_whatever_umask_work_has(tmp_path: Path) -> None:
    root = tmp_path / "published"
    to = Publisher(root)
    to.publish({"public": [to.object("tasks", "tasks", "Tasks", [])]})
    to.alive()
    (tmp_path / "large").write_bytes(b"x")
    keep(to, tmp_path / "large")
    assert {path.stat().st_mode & 0o777 for path in root.rglob("*") if path.is_dir()} == {0o755}
    assert {path.stat().st_mode & 0o777 for path in root.rglob("*") if path.is_file()} == {0o644}


def test_what_is_published_again_unchanged_keeps_every_byte(tmp_path: Path) -> None:
    to = Publisher(tmp_path)

    def publish(score: float) -> bool:
        return to.publish(
            {"public": [to.object("tasks/x/main", "board", "x", {"score": score})], "team:a": []}
        )

    assert publish(0.5)
    first, pointer = names(tmp_path), Published(tmp_path).pointer()
    etag = Published(tmp_path).view("public").get("tasks/x/main").etag  # type: ignore[union-attr]
    assert not publish(0.5) and names(tmp_path) == first
    assert publish(0.6)
    assert Published(tmp_path).pointer()["team:a"] == pointer["team:a"], (
        "only the part that changed is another"
    )
    assert Published(tmp_path).view("public").get("tasks/x/main").etag != etag  # type: ignore[union-attr]
    assert publish(0.5) and Published(tmp_path).pointer() == pointer, "digests depend on nothing but content"


def test_a_reader_at_an_old_generation_reads_on_and_old_ones_go_later(tmp_path: Path) -> None:
    to = Publisher(tmp_path)
    to.publish({"public": [to.object("tasks", "tasks", "", ["old"])]})
    view = Published(tmp_path).view("public")
    to.publish({"public": [to.object("tasks", "tasks", "", ["new"])]})
    assert view.data(view.get("tasks")) == ["old"]  # type: ignore[arg-type]
    for path in tmp_path.rglob("*"):
        os.utime(path, (1, 1))
    assert KEPT_SECONDS > 60
    to.publish({"public": [to.object("tasks", "tasks", "", ["newest"])]})
    assert len(list(tmp_path.glob("audiences/*"))) == 1 and len(list(tmp_path.glob("files/*/*"))) == 1


def test_a_writer_that_dies_before_the_pointer_leaves_the_generation_before(tmp_path: Path) -> None:
    to = Publisher(tmp_path)
    to.publish({"public": [to.object("tasks", "tasks", "", ["old"])]})
    with pytest.raises(ValueError) as caught:
        to.publish({"public": [to.object("tasks", "tasks", "", ["new"])], "x": []})
    assert "'x'" in str(caught.value)
    view = Published(tmp_path).view("public")
    assert view.data(view.get("tasks")) == ["old"]  # type: ignore[arg-type]
    with pytest.raises(ValueError):
        to.publish({"public": [to.object("tasks", "tasks", "", n) for n in (1, 2)]})


def test_the_age_of_work_is_said_and_no_file_can_be_named_from_outside(tmp_path: Path) -> None:
    to, seen = Publisher(tmp_path), Published(tmp_path)
    assert seen.age() is None
    to.alive()
    said = (tmp_path / "alive.json").stat().st_mtime
    assert seen.age(said + 90) == pytest.approx(90)
    with pytest.raises(ValueError):
        seen.view("public").read("../../../etc/passwd")


@pytest.mark.parametrize("text", ["", "[]", "{", '{"schema_version": 1, "audiences": {"public": "../x"}}'])
def test_a_pointer_that_is_none_is_damaged_and_replaced(tmp_path: Path, text: str) -> None:
    Publisher(tmp_path)
    (tmp_path / "current.json").write_text(text)
    with pytest.raises(Damaged):
        Published(tmp_path).view("public").get("tasks")
    to = Publisher(tmp_path)
    to.publish({"public": [to.object("tasks", "tasks", "", [])]})
    assert Published(tmp_path).view("public").get("tasks") is not None


def test_what_was_damaged_is_made_again(tmp_path: Path) -> None:
    to = Publisher(tmp_path)

    def publish() -> None:
        to.publish({"public": [to.object("tasks", "tasks", "Tasks", ["x"], "<p>")]})

    publish()
    whole = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    for path in whole:
        if path.parent.name != tmp_path.name:
            path.write_bytes(path.read_bytes()[:-1] + b"x")
    left = tmp_path / "files/.x.0123abcd.part"
    left.write_bytes(b"killed")
    os.utime(left, (1, 1))
    to.clean()
    publish()
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == whole
