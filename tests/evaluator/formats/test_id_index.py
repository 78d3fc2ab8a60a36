"""The index of a large corpus says the same as a set of its ids."""

from __future__ import annotations

import gzip
import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.errors import EvaluatorError
from evaluator.formats import corpus
from evaluator.formats.fast.ids import IdIndex
from evaluator.formats.ranked import KnownDocuments, Rules
from tests.worlds.run_files import outcome

IDS = [b"d%d" % i for i in range(30)] + ["dé".encode(), b"x" * 128, b"a-longer-id-[of]-31-characters.", b"0"]
OTHERS = [b"d30", b"d", b"", b"d1\0", b"x" * 129, b"\xff", b"d1\x0b"]


CORPUS = b"\n".join(IDS)


def indexed(path: Path, content: bytes, *, index: bool = True) -> KnownDocuments:
    """The corpus, read by an index or as a set."""
    path.write_bytes(content)
    with pytest.MonkeyPatch.context() as patch:
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
        ours = indexed(path, content)
        theirs = indexed(path, content, index=False)
        assert isinstance(ours, IdIndex)
        assert set(ours.missing(asked)) == set(theirs.missing(asked))
        assert set(ours.ids()) == set(theirs.ids())


@pytest.mark.parametrize("form", ["json", "trec", "gzip"])
def test_other_forms_have_an_index_too(form: str, tmp_path: Path) -> None:
    content = {
        "json": "".join(json.dumps({"docno": one.decode(), "text": "t"}) + "\n" for one in IDS).encode(),
        "trec": b"".join(b"<DOC>\n<DOCNO> %s </DOCNO>\n</DOC>\n" % one for one in IDS),
        "gzip": gzip.compress(b"\n".join(IDS)),
    }[form]
    ours = indexed(tmp_path / "corpus", content)
    assert isinstance(ours, IdIndex)
    assert set(ours.missing(IDS + OTHERS)) == set(OTHERS)


def test_no_change_of_an_id_passes_for_it_whatever_is_drawn(tmp_path: Path) -> None:
    """Multipliers that are odd let the highest bits of two words cancel out, in half of the draws."""
    real = [b"document-%06d-of-16" % i for i in range(50)]
    wrong = [bytes(c ^ 0x40 * (k in (3, 7, 11, 15)) for k, c in enumerate(one)) for one in real]
    for draw in range(20):
        ours = indexed(tmp_path / "ids.txt", b"\n".join(real))
        assert isinstance(ours, IdIndex)
        assert not ours.missing(real)
        assert set(ours.missing(wrong)) == set(wrong)


def test_an_empty_id_is_one_like_others(tmp_path: Path) -> None:
    ours = indexed(tmp_path / "corpus.trec", b"<DOC><DOCNO></DOCNO></DOC>\n" * 2)
    assert isinstance(ours, IdIndex)
    assert set(ours.missing([b"", b"d"])) == {b"d"}
    assert ours.missing([b"d"])
    assert not ours.missing([b""])


def test_a_corpus_is_read_as_its_name_says(tmp_path: Path) -> None:
    content = b"x <DOCNO>a</DOCNO>\n<DOCNO>b</DOCNO>\n"
    assert not indexed(tmp_path / "corpus.trec", content).missing([b"a", b"b"])
    assert set(indexed(tmp_path / "corpus.txt", content).missing([b"a", b"x"])) == {b"a"}


def test_ids_that_are_too_long_are_held_in_a_set(tmp_path: Path) -> None:
    ours = indexed(tmp_path / "ids.txt", b"a\n" + b"x" * 129)
    assert not isinstance(ours, IdIndex)
    assert not ours.missing([b"x" * 129])
    with pytest.raises(EvaluatorError):
        indexed(tmp_path / "none.txt", b"\n\n")


@pytest.mark.parametrize("wrong", [b"", b"d77"])
def test_a_run_is_checked_alike_by_both(wrong: bytes, tmp_path: Path) -> None:
    docs = [*IDS[:20], *([wrong] if wrong else [])]
    run = b"".join(b"1 Q0 %s %d %d tag\n" % (doc, i, 50 - i) for i, doc in enumerate(docs))
    found = []
    for index in (True, False):
        known = indexed(tmp_path / "ids.txt", b"\n".join(IDS), index=index)
        rules = Rules(documents=known, suggest=True)
        found += [outcome(tmp_path / "run.txt", run, rules, fast=fast) for fast in (True, False)]
    assert found == [found[0]] * 4
    assert ("F019" in found[0][3]) == bool(wrong)
