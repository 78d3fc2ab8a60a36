"""Pickled look-ups become JSON Lines, and nothing in them is run."""

from __future__ import annotations

import collections
import io
import json
import os
import pickle
import random
import re
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evaluator.__main__ import main
from evaluator.argue import open_collection
from evaluator.argue.formats.pickles import RefusedPickle, convert, entries
from evaluator.errors import EvaluatorError

DOCS = {
    "d1": {"title": "T", "text": "one"},
    "d2": {"title": None, "text": "two"},
    "d3": "three",
    "d4": ("T", "four"),
}


def dump(path: Path, data: Any, protocol: int = 4) -> Path:
    path.write_bytes(pickle.dumps(data, protocol=protocol))
    return path


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("ending", [".jsonl", ".jsonl.gz"])
def test_a_look_up_is_converted_and_found(protocol: int, ending: str, tmp_path: Path) -> None:
    target = tmp_path / f"doc_mapping_ru{ending}"
    assert convert(dump(tmp_path / "x.pkl", DOCS, protocol), target) == 4
    with open_collection(target) as found:
        assert [getattr(found.get(d), "text", None) for d in DOCS] == ["one", "two", "three", "four"]
        assert found.get("d1").title == found.get("d4").title == "T"  # type: ignore[union-attr]


plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(st.characters(codec="utf-8"), max_size=300),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=3), inner, max_size=4) | st.tuples(inner, inner) | st.tuples(),
    max_leaves=12,
)  # fmt: skip


documents = st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=4), plain, max_size=5)


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(documents, st.sampled_from([2, 3, 4, 5]), st.booleans())
def test_plain_data_is_read_as_pickle_reads_it(tmp_path: Path, data: Any, protocol: int, fast: bool) -> None:
    buffer = io.BytesIO()
    pickler = pickle.Pickler(buffer, protocol=protocol)
    pickler.fast = fast
    pickler.dump(data)
    (tmp_path / "p.pkl").write_bytes(buffer.getvalue())
    assert dict(entries(tmp_path / "p.pkl")) == pickle.loads(buffer.getvalue()) == data


def test_equal_texts_that_the_pickle_remembers(tmp_path: Path) -> None:
    rng = random.Random(3)
    titles = [f"title {i}" for i in range(50)]
    data = {f"d{i}": {"title": rng.choice(titles), "text": f"text {i}"} for i in range(5000)}
    assert dict(entries(dump(tmp_path / "p.pkl", data))) == data


class Evil:
    def __reduce__(self) -> Any:
        return os.system, ("touch pwned",)


def nested_texts() -> bytes:
    """A pickle of texts in pairs of pairs, each twice as large as the one before."""
    body = b"\x80\x04}X\x01\x00\x00\x00dX\x03\x00\x00\x00lolq\x01"
    for i in range(1, 40):
        body += bytes([ord("h"), i, ord("h"), i, 0x86, ord("q"), i + 1])
    return body + b"s."


EVIL: dict[str, Any] = {
    "reduce": pickle.dumps({"d": Evil()}),
    "reduce, old": pickle.dumps({"d": Evil()}, protocol=2),
    "class": pickle.dumps({"d": collections.OrderedDict(a=1)}),
    "function": pickle.dumps({"d": os.system}),
    "bytes": pickle.dumps({"d": b"x"}),
    "set": pickle.dumps({"d": {1, 2}}),
    "text protocol": pickle.dumps(DOCS, protocol=0),
    "old global": b"cos\nsystem\n(S'touch pwned'\ntR.",
    "global": b"\x80\x02}X\x01\x00\x00\x00dcos\nsystem\nX\x0b\x00\x00\x00touch pwned\x85Rs.",
    "inst": b"\x80\x02}X\x01\x00\x00\x00d(X\x0b\x00\x00\x00touch pwnedios\nsystem\ns.",
    "persistent": b"\x80\x02}X\x01\x00\x00\x00dPid\ns.",
    "extension": b"\x80\x02}X\x01\x00\x00\x00d\x82\x01s.",
    "a list": pickle.dumps([1, 2]),
    "text": pickle.dumps("x"),
    "nothing": b"",
    "cut": pickle.dumps(DOCS)[:-9],
    "no protocol": b".",
    "protocol 9": b"\x80\x09}.",
    "pop of nothing": b"\x80\x020.",
    "mark of nothing": b"\x80\x02u.",
    "update of nothing": b"\x80\x02(u.",
    "open mark": b"\x80\x02}(.",
    "odd pairs": b"\x80\x02}(Nu.",
    "a huge text": b"\x80\x04}\x8d\xff\xff\xff\xff\xff\xff\xff\x7f.",
    "large text": b"\x80\x04}X\xff\xff\xff\x7f.",
    "never remembered": b"\x80\x02}h\x05Ns.",
    "refers to itself": b"\x80\x02}q\x00X\x01\x00\x00\x00dh\x00s.",
    "list of itself": b"\x80\x02}X\x01\x00\x00\x00d]q\x00h\x00as.",
    "list as a key": b"\x80\x02}]Ns.",
    "far memo": b"\x80\x02}r\xff\xff\xff\x7fj\xfe\xff\xff\x7fNs.",
    "append to the root": b"\x80\x02}Na.",
    "rubbish": bytes(range(256)) * 4,
    "a billion nested texts": nested_texts(),
}  # fmt: skip


@pytest.mark.parametrize("name", EVIL)
def test_everything_else_is_refused_and_nothing_is_run(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evil.pkl").write_bytes(EVIL[name])
    monkeypatch.setattr("pickle.Unpickler", lambda *_, **__: pytest.fail("unpickled"))
    with pytest.raises(EvaluatorError) as caught:
        convert(tmp_path / "evil.pkl", tmp_path / "out.jsonl")
    assert "".join(caught.value.lines()).isprintable()
    assert [p.name for p in tmp_path.iterdir()] == ["evil.pkl"]  # no pwned, no half of an output


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_change_of_a_pickle_gives_data_or_is_refused(tmp_path: Path, data: st.DataObject) -> None:
    raw = bytearray(pickle.dumps(DOCS, protocol=data.draw(st.sampled_from([2, 4]))))
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path / "p.pkl"
    path.write_bytes(bytes(raw))
    try:
        for key, value in entries(path):
            json.dumps([key, value])
    except RefusedPickle as error:
        assert str(error).isprintable()


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    def peak(count: int) -> int:
        data = {f"d{i}": {"title": f"t{i}", "text": "x" * 200 + str(i)} for i in range(count)}
        path = dump(tmp_path / "p.pkl", data)
        tracemalloc.start()
        for _ in entries(path):
            pass
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    assert peak(6_000) < peak(2_000) + 300_000  # the file grows by a megabyte


def test_what_is_no_document_is_named(tmp_path: Path) -> None:
    target = tmp_path / "o.jsonl"
    with pytest.raises(EvaluatorError) as caught:
        convert(dump(tmp_path / "p.pkl", {"d1": {"title": "x"}, "d2": 3, "d3": "fine", "": "x"}), target)
    assert re.findall('"(.*?)"', caught.value.why) == ["d1", "d2"] and caught.value.why.count(";") == 2
    with pytest.raises(EvaluatorError):
        convert(dump(tmp_path / "p.pkl", {}), target)
    with pytest.raises(EvaluatorError):
        convert(dump(tmp_path / "p.pkl", DOCS), target, max_bytes=50)
    with pytest.raises(EvaluatorError):
        convert(tmp_path / "none.pkl", target)
    assert not target.exists()


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["convert-lookup", str(dump(tmp_path / "p.pkl", DOCS)), str(tmp_path / "o.jsonl")]
    assert main(words) == 0
    assert re.findall(r"o\.jsonl|\d+", capsys.readouterr().err) == ["o.jsonl", "4"]
