"""The index of a large corpus says the same as a set of its ids, also where it cannot be kept or is damaged."""

from __future__ import annotations

import gzip
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.errors import EvaluatorError
from evaluator.formats import corpus
from evaluator.formats.fast import ids
from evaluator.formats.fast.ids import IdIndex
from evaluator.formats.ranked import KnownDocuments, Rules
from tests.worlds.run_files import outcome

IDS = [b"d%d" % i for i in range(30)] + ["dé".encode(), b"x" * 128, b"a-longer-id-[of]-31-characters.", b"0"]
OTHERS = [b"d30", b"d", b"", b"d1\0", b"x" * 129, b"\xff", b"d1\x0b"]


@pytest.fixture(autouse=True, scope="module")
def few_places() -> Iterator[None]:
    """So that most ids are far behind their own place."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ids, "PLACES", 0.2)
        yield


CORPUS = b"\n".join(IDS)


def indexed(path: Path, content: bytes, folder: Path, *, index: bool = True) -> KnownDocuments:
    """The corpus, read by an index that is kept in ``folder``; or as a set."""
    path.write_bytes(content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVALUATOR_CACHE", str(folder))
        patch.setattr(corpus, "LARGE", 1 if index else 1 << 60)
        return corpus.read_corpus(path)


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.sampled_from([*IDS, b"", b" d1 and more", b"d2\tmore", b"d3\r", b"d\x0c4", b"d\x015"]), max_size=12),
    st.booleans(),
    st.lists(st.sampled_from(IDS + OTHERS), max_size=20),
)  # fmt: skip
def test_an_index_of_lines_knows_what_a_set_knows(lines: list[bytes], mark: bool, asked: list[bytes]) -> None:
    content = (b"\xef\xbb\xbf" if mark else b"") + b"\n".join([*lines, b"last"])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "ids.txt")
        ours = indexed(path, content, Path(folder, "kept"))
        theirs = indexed(path, content, Path(folder, "kept"), index=False)
        assert isinstance(ours, IdIndex)
        assert set(ours.missing(asked)) == set(theirs.missing(asked))
        assert set(ours.ids()) == set(theirs.ids())
        again = indexed(path, content, Path(folder, "kept"))
        assert set(again.missing(asked)) == set(theirs.missing(asked))


@pytest.mark.parametrize("form", ["json", "trec", "gzip"])
def test_other_forms_have_an_index_too(form: str, tmp_path: Path) -> None:
    content = {
        "json": "".join(json.dumps({"docno": one.decode(), "text": "t"}) + "\n" for one in IDS).encode(),
        "trec": b"".join(b"<DOC>\n<DOCNO> %s </DOCNO>\n</DOC>\n" % one for one in IDS),
        "gzip": gzip.compress(b"\n".join(IDS)),
    }[form]
    ours = indexed(tmp_path / "corpus", content, tmp_path / "kept")
    assert isinstance(ours, IdIndex)
    assert set(ours.missing(IDS + OTHERS)) == set(OTHERS)


def test_no_change_of_an_id_passes_for_it_whatever_is_drawn(tmp_path: Path) -> None:
    """Multipliers that are odd let the highest bits of two words cancel out, in half of the draws."""
    real = [b"document-%06d-of-16" % i for i in range(50)]
    wrong = [bytes(c ^ 0x40 * (k in (3, 7, 11, 15)) for k, c in enumerate(one)) for one in real]
    for draw in range(20):
        ours = indexed(tmp_path / "ids.txt", b"\n".join(real), tmp_path / f"kept-{draw}")
        assert isinstance(ours, IdIndex)
        assert not ours.missing(real)
        assert set(ours.missing(wrong)) == set(wrong)


def test_an_empty_id_is_one_like_others(tmp_path: Path) -> None:
    ours = indexed(tmp_path / "corpus.trec", b"<DOC><DOCNO></DOCNO></DOC>\n" * 2, tmp_path / "kept")
    assert isinstance(ours, IdIndex)
    assert set(ours.missing([b"", b"d"])) == {b"d"}
    assert ours.missing([b"d"])
    assert not ours.missing([b""])


def test_the_index_is_made_once_and_anew_where_it_is_damaged(tmp_path: Path) -> None:
    path, content = tmp_path / "ids.txt", CORPUS
    indexed(path, content, tmp_path / "kept")
    (file,) = (tmp_path / "kept").iterdir()
    whole = file.read_bytes()
    indexed(path, content, tmp_path / "kept")
    assert file.read_bytes() == whole, "its multipliers are drawn anew when it is made"
    for damaged in (b"", whole[:1000], whole[:-8], b"x" + whole[1:]):
        file.write_bytes(damaged)
        assert set(indexed(path, content, tmp_path / "kept").missing(IDS + OTHERS)) == set(OTHERS)
    indexed(path, content + b"\nmore", tmp_path / "kept")
    assert len(list((tmp_path / "kept").iterdir())) == 2, "another corpus has another"


def test_only_an_index_that_nobody_else_can_write_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, content, kept = tmp_path / "ids.txt", b"\n".join(IDS), tmp_path / "kept"
    indexed(tmp_path / "other.txt", b"\n".join(OTHERS[:2]), kept)
    (planted,) = (one.read_bytes() for one in kept.iterdir())
    for one in kept.iterdir():
        one.unlink()
    indexed(path, content, kept)
    (file,) = kept.iterdir()
    assert (kept.stat().st_mode & 0o777, file.stat().st_mode & 0o777) == (0o700, 0o600)
    for mode in (0o622, 0o620, 0o602):
        file.write_bytes(planted)
        file.chmod(mode)
        assert set(indexed(path, content, kept).missing(IDS + OTHERS)) == set(OTHERS)
        assert file.stat().st_mode & 0o777 == 0o600, "it was made anew"
    file.rename(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").write_bytes(planted)
    file.symlink_to(tmp_path / "elsewhere")
    assert set(indexed(path, content, kept).missing(IDS + OTHERS)) == set(OTHERS)
    file.write_bytes(planted)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    ours = indexed(path, content, kept)
    assert isinstance(ours, IdIndex)
    assert set(ours.missing(IDS + OTHERS)) == set(OTHERS)


def test_what_an_index_is_damaged_in_is_no_error(tmp_path: Path) -> None:
    path, content, kept = tmp_path / "ids.txt", b"\n".join(IDS), tmp_path / "kept"
    indexed(path, content, kept)
    (file,) = kept.iterdir()
    whole = file.read_bytes()
    own = 24  # behind what it begins with and the number of ids: how many places of their own they have
    for damaged in (whole[:own] + b"\xff\xff\xff\xff" + whole[own + 4 :], whole[:-80] + b"\0" * 80):
        file.write_bytes(damaged)
        assert set(indexed(path, content, kept).missing(OTHERS)) == set(OTHERS)


def test_an_index_is_on_the_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = Mock()
    for name in ("fsync", "replace"):
        monkeypatch.setattr(os, name, Mock(wraps=getattr(os, name)))
        calls.attach_mock(getattr(os, name), name)
    indexed(tmp_path / "ids.txt", CORPUS, tmp_path / "kept")
    assert [call[0] for call in calls.mock_calls] == ["fsync", "replace"]


def test_a_corpus_that_is_read_in_two_ways_has_an_index_for_each(tmp_path: Path) -> None:
    content = b"x <DOCNO>a</DOCNO>\n<DOCNO>b</DOCNO>\n"
    assert not indexed(tmp_path / "corpus.trec", content, tmp_path / "kept").missing([b"a", b"b"])
    assert set(indexed(tmp_path / "corpus.txt", content, tmp_path / "kept").missing([b"a", b"x"])) == {b"a"}


@pytest.mark.parametrize("kept", [os.devnull, "file/kept"])
def test_without_a_folder_to_keep_it_the_index_is_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "file").write_text("no folder")
    ours = indexed(tmp_path / "ids.txt", CORPUS, tmp_path / kept)
    assert isinstance(ours, IdIndex) and set(ours.missing(IDS + OTHERS)) == set(OTHERS)
    assert not (tmp_path / "home").exists()


def test_ids_that_are_too_long_are_held_in_a_set(tmp_path: Path) -> None:
    ours = indexed(tmp_path / "ids.txt", b"a\n" + b"x" * 129, tmp_path / "kept")
    assert not isinstance(ours, IdIndex)
    assert not ours.missing([b"x" * 129])
    with pytest.raises(EvaluatorError):
        indexed(tmp_path / "none.txt", b"\n\n", tmp_path / "kept")


@pytest.mark.parametrize("wrong", [b"", b"d77"])
def test_a_run_is_checked_alike_by_both(wrong: bytes, tmp_path: Path) -> None:
    docs = [*IDS[:20], *([wrong] if wrong else [])]
    run = b"".join(b"1 Q0 %s %d %d tag\n" % (doc, i, 50 - i) for i, doc in enumerate(docs))
    found = []
    for index in (True, False):
        known = indexed(tmp_path / "ids.txt", b"\n".join(IDS), tmp_path / "kept", index=index)
        rules = Rules(documents=known, suggest=True)
        found += [outcome(tmp_path / "run.txt", run, rules, fast=fast) for fast in (True, False)]
    assert found == [found[0]] * 4
    assert ("F019" in found[0][3]) == bool(wrong)
