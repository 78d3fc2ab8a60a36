"""A tiny entailment model in ONNX form: a claim follows from a text that has its words. Made here, so that none is shipped."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

WIDTH = 512  # words are told apart by their number modulo this
_FLOAT, _INT64 = 1, 7
_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")


def make_model(folder: Path, texts: Iterable[str], *, labels: tuple[str, ...] | None = None) -> Path:
    """Write model.onnx, tokenizer.json and config.json for the words of ``texts`` into ``folder``; returns it."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.normalizers import Lowercase
    from tokenizers.pre_tokenizers import Whitespace
    from tokenizers.processors import TemplateProcessing

    words = sorted({word for text in texts for word in re.findall(r"\w+|[^\w\s]+", text.lower())})
    ids = {word: number for number, word in enumerate([*_SPECIAL, *words])}
    tokenizer = Tokenizer(WordLevel(ids, unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = Lowercase(), Whitespace()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(name, ids[name]) for name in ("[CLS]", "[SEP]")],
    )
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    names = labels or ("contradiction", "neutral", "entailment")
    (folder / "config.json").write_text(json.dumps({"id2label": dict(enumerate(names))}), "utf-8")
    (folder / "model.onnx").write_bytes(_model(len(ids), len(names)))
    return folder


def _model(words: int, labels: int) -> bytes:
    table = np.zeros((words, WIDTH), dtype=np.float32)
    for number in range(len(_SPECIAL), words):
        table[number, number % WIDTH] = 1
    towards = np.zeros((1, labels), dtype=np.float32)
    towards[0, 0], towards[0, -1] = -8, 8
    nodes = [
        _node("Gather", ["table", "input_ids"], "words"),
        _node("Cast", ["token_type_ids"], "second", to=_FLOAT),
        _node("Unsqueeze", ["second", "last"], "in_claim"),
        _node("Sub", ["one", "in_claim"], "in_text"),
        *(
            node
            for part in ("text", "claim")
            for node in (
                _node("Mul", ["words", f"in_{part}"], f"words_{part}"),
                _node("ReduceMax", [f"words_{part}"], part, axes=[1], keepdims=0),
            )
        ),
        _node("Mul", ["text", "claim"], "shared"),
        _node("ReduceSum", ["shared", "first"], "shared_count", keepdims=1),
        _node("ReduceSum", ["claim", "first"], "claim_count", keepdims=1),
        _node("Max", ["claim_count", "one"], "claim_some"),
        _node("Div", ["shared_count", "claim_some"], "share"),
        _node("Sub", ["share", "enough"], "beyond"),
        _node("MatMul", ["beyond", "towards"], "logits"),
    ]
    constants = {
        "table": table,
        "last": np.array([2], dtype=np.int64),
        "first": np.array([1], dtype=np.int64),
        "one": np.array(1, dtype=np.float32),
        "enough": np.array(0.75, dtype=np.float32),
        "towards": towards,
    }
    graph = b"".join(
        [
            *(_field(1, node) for node in nodes),
            _field(2, b"overlap"),
            *(_field(5, _tensor(name, value)) for name, value in constants.items()),
            *(_field(11, _value(name, _INT64, ("b", "n"))) for name in ("input_ids", "token_type_ids")),
            _field(12, _value("logits", _FLOAT, ("b", labels))),
        ]
    )
    return _number(1, 8) + _field(7, graph) + _field(8, _number(2, 13))


# The wire format of protocol buffers, as far as it is needed: a field is its number and kind, then a number or bytes.


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _field(field: int, data: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(data)) + data


def _node(op: str, inputs: list[str], output: str, **attributes: int | list[int]) -> bytes:
    rows = []
    for name, value in attributes.items():
        row = _field(1, name.encode())
        if isinstance(value, list):
            row += b"".join(_number(8, v) for v in value) + _number(20, 7)
        else:
            row += _number(3, value) + _number(20, 2)
        rows.append(_field(5, row))
    named = b"".join(_field(1, name.encode()) for name in inputs)
    return named + _field(2, output.encode()) + _field(4, op.encode()) + b"".join(rows)


def _tensor(name: str, value: Any) -> bytes:
    kind = _FLOAT if value.dtype == np.float32 else _INT64
    dims = b"".join(_number(1, size) for size in value.shape)
    return dims + _number(2, kind) + _field(8, name.encode()) + _field(9, value.tobytes())


def _value(name: str, kind: int, shape: tuple[int | str, ...]) -> bytes:
    dims = b"".join(_field(1, _number(1, d) if isinstance(d, int) else _field(2, d.encode())) for d in shape)
    tensor = _number(1, kind) + _field(2, dims)
    return _field(1, name.encode()) + _field(2, _field(1, tensor))
