"""The error for what is not there: what is said of it, and what is suggested."""

from runner.model.errors import no_such


def test_what_is_not_there_is_named() -> None:
    error = no_such("run", "a\x1b[31m/b", fix="runner runs lists them")
    assert (error.code, error.what) == ("E102", "there is no run a\\x1b[31m/b")
    assert error.fix == "runner runs lists them"


def test_what_something_lacks_is_said_of_it() -> None:
    error = no_such("round", "x", of="touche", why="Its rounds are: one.")
    assert (error.what, error.why) == ("touche has no round x", "Its rounds are: one.")


def test_a_near_name_is_the_fix() -> None:
    error = no_such("round", "frist", ["first", "second"], fix="name one")
    assert error.fix == 'Did you mean "first"?'
    assert no_such("round", "zzz", ["first", "second"], fix="name one").fix == "name one"


def test_long_names_are_cut() -> None:
    assert no_such("file", "n" * 500, limit=200).what == f"there is no file {'n' * 199}…"
