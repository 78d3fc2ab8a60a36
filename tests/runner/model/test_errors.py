"""The error for something that does not exist, and its suggestion."""

from runner.model.errors import no_such


def test_the_name_and_the_fix_are_in_the_error() -> None:
    error = no_such("run", "a\x1b[31m/b", fix="runner runs")
    assert error.code == "E102" and error.what.endswith(" run a\\x1b[31m/b") and error.fix == "runner runs"
    error = no_such("round", "x", of="touche", why="Rounds: one.")
    assert error.what.split()[0] == "touche" and error.what.split()[-2:] == ["round", "x"]
    assert error.why == "Rounds: one."
    assert no_such("file", "n" * 500, limit=200).what.endswith(f" {'n' * 199}…")


def test_a_near_name_is_the_fix() -> None:
    assert '"first"' in no_such("round", "frist", ["first", "second"], fix="name one").fix
    assert no_such("round", "zzz", ["first", "second"], fix="name one").fix == "name one"
