"""Read topics in markup: the SGML of TREC, CLEF, FIRE and NTCIR, and XML. Each topic becomes a record of its fields.

The text of a field is all the text of its element. Inline markup such as ``<b>`` or ``<br>`` is removed, the text in it stays.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from html import escape, unescape
from pathlib import Path
from typing import Any, NamedTuple
from xml.parsers import expat

from runner.kinds.adhoc.formats import (
    MAX_LINE,
    QUERIES,
    TOPIC_IDS,
    Record,
    Report,
    column_name,
    first,
    readable,
)
from runner.kinds.release import unpacked
from schemas import show

TOPIC_ELEMENTS = ("topic", "query", "inex_topic")
_ID_ATTRIBUTES = ("number", "id", "num", "qid", "topic_id", "identifier")
_ALIASES = {"num": "qid", "desc": "description", "narr": "narrative"}
_TEXT_FIELDS = frozenset({"title", "description", "narrative", "query", "question", "keywords", "text"})
# Elements of TREC's topics, which need not be closed.
_TREC_FIELDS = _TEXT_FIELDS | frozenset([
    "num", "number", "identifier", "qid", "desc", "narr", "head", "dom", "smry", "con", "fac", "def",
    "nat", "time", "querytime", "querytweettime", "slang", "tlang", "conc", "docs", "toptype",
])  # fmt: skip
_INLINE = frozenset([
    "a", "abbr", "acronym", "b", "big", "cite", "code", "del", "em", "font", "i", "ins", "kbd", "mark",
    "q", "s", "small", "span", "strike", "strong", "sub", "sup", "tt", "u", "var",
])  # fmt: skip
_BLOCKS = frozenset([
    "blockquote", "br", "center", "dd", "div", "dl", "dt", "h1", "h2", "h3", "h4", "h5", "h6", "hr",
    "li", "ol", "p", "pre", "table", "tbody", "td", "th", "thead", "tr", "ul",
])  # fmt: skip
_MARKUP = _INLINE | _BLOCKS
_TAG = re.compile(
    r"""<(/?)([A-Za-z][\w.-]*+)((?:\s++[\w:.-]++\s*+=\s*+(?:"[^"<>]*+"|'[^'<>]*+'|[^\s"'<>]++))*+)\s*+/?>"""
)
_ATTRIBUTE = re.compile(r"""(?<![\w:.-])([\w:.-]++)\s*+=\s*+("[^"]*+"|'[^']*+'|[^\s"'<>]++)""")
_TOP = re.compile(rb"<top(\s[^<>]*+)?>", re.IGNORECASE)
_TOP_END = re.compile("</top\\s*>", re.IGNORECASE)
_CDATA = re.compile(r"<!\[CDATA\[(.*?)(\]\]>|\Z)", re.DOTALL)
_COMMENT = re.compile(r"<!--(.*?)(-->|\Z)", re.DOTALL)
_LABEL = re.compile(r"(?:number|topic|description|narrative)\s*:", re.IGNORECASE)
_TURN_IDS = ("number", "turn_id")
_UTTERANCES = ("raw_utterance", "utterance")  # of CAsT and of iKAT
_LANGUAGE = re.compile(r"([a-z]{2,3}|[cejk])-(.+)")  # NTCIR has <E-TITLE>


def _attributes(text: str) -> dict[str, str]:
    """Return the attributes of a tag."""
    return {key.lower(): unescape(value.strip("\"'")) for key, value in _ATTRIBUTE.findall(text)}


def _separator(tag: str) -> str:
    """Return what stands for a tag within a text: ``H<sub>2</sub>O`` is one word, ``lobsters.<br>Also`` is two."""
    return "" if tag in _INLINE else "\n" if tag in _BLOCKS else " "


def _field_name(tag: str, attributes: Mapping[str, str]) -> str:
    """Return the field that an element holds; with the language that the element states, as in ``en-title``."""
    language = next((attributes[key] for key in ("lang", "xml:lang") if attributes.get(key)), "")
    name = _ALIASES.get(tag, tag)
    return f"{language.lower()}-{name}" if language and name in _TEXT_FIELDS else name


def _base_name(name: str) -> tuple[str, str]:
    """Return the language and the field of names such as ``en-title`` (CLEF's ``<EN-title>``)."""
    match = _LANGUAGE.fullmatch(name)
    if match is None or _ALIASES.get(match[2], match[2]) not in _TEXT_FIELDS:
        return "", name
    return match[1], _ALIASES.get(match[2], match[2])


def _in_one_language(fields: dict[str, str]) -> dict[str, str]:
    """Return the fields by names without the language if they are all in one language."""
    languages = {language for name in fields if (language := _base_name(name)[0])}
    plain = {_base_name(name)[1]: text for name, text in fields.items()}
    return plain if len(languages) == 1 and len(plain) == len(fields) else fields


def read_whole(path: Path, name: str, report: Report) -> bytes:
    """Return the bytes of a file of topics; none if the file cannot be read or is too large."""
    with readable(name, report), unpacked(path) as stream:
        data: bytes = stream.read(MAX_LINE + 1)
        if len(data) <= MAX_LINE:
            return data
        report.add(name, f"has more than {MAX_LINE >> 20} MiB, too much for topics")
    return b""


def trec_topics(path: Path, name: str, report: Report, text_fields: Collection[str] = ()) -> Iterator[Record]:
    """Yield each ``<top>``; its elements need not be closed, and lose labels such as ``Number:``.

    Elements that ``text_fields`` names begin a field like those of TREC's topics.
    """
    data = read_whole(path, name, report)
    line, at = 1, 0
    begun = list(_TOP.finditer(data))
    ends = [*(match.start() for match in begun[1:]), len(data)]
    for match, end in zip(begun, ends, strict=True):
        line, at = line + data.count(b"\n", at, match.end()), match.end()
        topic, *behind = _TOP_END.split(report.text(data[at:end], name), maxsplit=1)
        place = f"{name}:{line}"
        fields = _SgmlTopic(topic, place, report, text_fields).fields()
        for key, value in _attributes(report.text(match[1] or b"", name)).items():
            fields.setdefault("qid" if key in _ID_ATTRIBUTES else key, value)
        yield Record(place, dict(fields))
        if words := _TAG.sub(" ", _without_comments("".join(behind))).split():
            what = f'text between the topics is left out: "{show(" ".join(words), 100)}"'
            if len(words) > 1:
                report.add(place, f"behind this topic, {what}", "move it into the topic, or remove it")
            else:
                report.remarks.append(f"{show(place, 100)}: {what}")


def _without_comments(text: str) -> str:
    """Return a text without comments; one that does not end is text."""
    return _COMMENT.sub(lambda match: " " if match[2] else match[0], text)


def _add_outside_text(
    fields: dict[str, str], text: str, place: str, report: Report, text_fields: Collection[str]
) -> None:
    """Add the text outside of the elements of a topic: its ``text``, or left out if an element has the query.

    More than a word next to a query could be a part of it, or an answer, and is an error. ``text_fields`` can name it ``text``.
    """
    if not text:
        return
    has_query = any(_base_name(name)[1] in QUERIES or column_name(name) in text_fields for name in fields)
    if not has_query or ("text" in text_fields and "text" not in fields):
        fields["text"] = text
    else:
        fields["outside of fields"] = text
        if len(text.split()) > 1:
            what = f'text outside of the fields of the topic would be left out: "{show(text, 100)}"'
            report.add(place, what, "move it into a field, remove it, or name it with --topic-text text")


class _SgmlTopic:
    """The text of one ``<top>``, cut into fields.

    A tag begins a field if TREC's topics have an element of that name, or if it stands between two elements. Any other tag
    is markup within a text. An unknown element at the beginning of a line behind an element that is not closed can be
    either: it is left out, and more than a word in it is an error.
    """

    def __init__(self, text: str, place: str, report: Report, text_fields: Collection[str]) -> None:
        self._place, self._report, self._text_fields = place, report, text_fields
        text = _CDATA.sub(lambda match: escape(match[1], quote=False) if match[2] else match[0], text)
        comments = [match[1] for match in _COMMENT.finditer(text) if match[2]]
        self._parts: dict[str, list[str]] = {"comment": comments}
        self._text = _without_comments(text)
        self._tags = [(tag, tag[2].lower()) for tag in _TAG.finditer(self._text)]
        self._closed = self._closed_tags()

    def _closed_tags(self) -> set[int]:
        """Return where the tags begin that have an end tag before the next tag of their name."""
        closed, open_ones = set[int](), dict[str, int]()
        for tag, name in self._tags:
            if not tag[1]:
                open_ones[name] = tag.start()
            elif name in open_ones:
                closed.add(open_ones.pop(name))
        return closed

    def fields(self) -> dict[str, str]:
        """Return the text of each field."""
        field, element, in_closed = "", "", False  # the field that is read now, and its element
        outer, doubtful = "", set[str]()
        at = 0
        for tag, name in self._tags:
            before = self._text[at : tag.start()]
            begins_line = (not at or "\n" in before) and not before.rpartition("\n")[2].strip()
            self._parts.setdefault(field, []).append(before)
            at = tag.end()
            if tag[1]:
                if name == element:
                    field, element, in_closed = outer, "", False
                else:
                    self._parts[field].append(_separator(name))
                continue
            closed = tag.start() in self._closed
            is_named = column_name(name) in self._text_fields
            is_known = is_named or _base_name(name)[1] in _TREC_FIELDS
            if (not is_named and name in _MARKUP) or (in_closed and closed):
                self._parts[field].append(_separator(name))
            elif in_closed:
                self._parts[field].append(tag[0])  # a name without an end tag is text
            elif is_known or not field or begins_line:
                key = _field_name(name, _attributes(tag[3]))
                if not is_known and field:
                    doubtful.add(key)
                outer = field if not is_known and closed else ""
                field, element, in_closed = key, name, closed
                self._parts.setdefault(field, []).append("\n")
            else:  # an unknown element in a line is markup
                self._parts[field].append(_separator(name) if closed else tag[0])
        self._parts.setdefault(field, []).append(self._text[at:])
        fields = {
            key: text
            for key, parts in self._parts.items()
            if (text := unescape(_without_label("".join(parts))).strip())
        }
        for key in sorted(doubtful & set(fields)):
            if len(fields[key].split()) > 1:
                what = (
                    f'the element <{show(key)}> is unknown, and would be left out: "{show(fields[key], 100)}"'
                )
                self._report.add(self._place, what, "close the element before it, or remove its tags")
        outside = fields.pop("", "")
        _add_outside_text(fields, outside, self._place, self._report, self._text_fields)
        return _in_one_language(fields)


def _without_label(text: str) -> str:
    text = text.strip()
    label = _LABEL.match(text)
    return text[label.end() if label else 0 :].strip()


class _XmlTopic(NamedTuple):
    place: str
    fields: dict[str, str]
    outside: str  # the text that is in no field


class _XmlTopics:
    """The topics of an XML file, which expat reports piece by piece.

    A child of a topic is a field. If it has the name of an element of HTML, it is markup in a topic with text of its own.
    """

    def __init__(self, name: str, encoding: str | None) -> None:
        self.name, self.topics = name, list[_XmlTopic]()
        self.parser = expat.ParserCreate(encoding)
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.CharacterDataHandler = self.characters
        self.parser.CommentHandler = self.comment
        self.parser.EntityDeclHandler = self.entity
        self.depth = 0  # elements from the topic down
        self.field = ""  # none for the text of the topic itself
        self.place = ""
        self.attributes: dict[str, str] = {}
        self.parts: dict[str, list[str]] = {}
        self.outside: list[
            tuple[str, str]
        ] = []  # texts in no field, each with its child called like HTML or ""
        self.entities = False

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        tag = tag.rpartition(":")[2].lower()
        attributes = {key.lower(): value for key, value in attributes.items()}
        if self.depth:
            self.depth += 1
            if self.depth == 2:
                self.field = _field_name(tag, attributes)
                self.characters(_separator(tag) if tag in _MARKUP else "\n")
            else:
                self.characters(_separator(tag))
        elif tag in TOPIC_ELEMENTS:
            self.depth, self.field, self.place = 1, "", f"{self.name}:{self.parser.CurrentLineNumber}"
            number = next((key for key in _ID_ATTRIBUTES if key in attributes), None)
            self.attributes = {"qid" if key == number else key: value for key, value in attributes.items()}
            self.parts, self.outside = {}, []

    def end(self, tag: str) -> None:
        if not self.depth:
            return
        self.depth -= 1
        if self.depth:
            self.characters(_separator(tag.rpartition(":")[2].lower()))
        if self.depth == 1:
            self.outside += [] if self.field in _MARKUP else [("", " ")]
            self.field = ""
        elif not self.depth:
            self.topics.append(self.topic())

    def topic(self) -> _XmlTopic:
        """Return the topic that ended. An element replaces an attribute, except that of the id."""
        outside = ""
        if any(text.strip() for field, text in self.outside if not field):
            outside = "".join(text for _, text in self.outside).strip()
        else:
            for field, text in self.outside:
                self.parts.setdefault(field, []).append(text)
        fields = {key: text for key, parts in self.parts.items() if (text := "".join(parts).strip())}
        if "qid" in fields:
            fields["qid"] = _without_label(fields["qid"])
        if number := self.attributes.get("qid", "").strip():
            fields |= {"num": fields["qid"]} if "qid" in fields else {}
            fields["qid"] = number
        return _XmlTopic(self.place, self.attributes | fields, outside)

    def characters(self, text: str) -> None:
        if self.depth and (not self.field or self.field in _MARKUP):
            self.outside.append((self.field, text))
        elif self.depth:
            self.parts.setdefault(self.field, []).append(text)

    def comment(self, text: str) -> None:
        if self.depth:
            self.parts.setdefault("comment", []).append(text)

    def entity(self, *_: object) -> None:
        self.entities = True  # an exception from here would lose its place
        self.parser.StartElementHandler = self.parser.CharacterDataHandler = None


_DECLARATION = re.compile(rb"""\s*<\?xml\b[^>]*?(?:encoding\s*=\s*["']([\w.-]+)["'][^>]*)?\?>""")


def xml_topics(path: Path, name: str, report: Report, text_fields: Collection[str] = ()) -> Iterator[Record]:
    """Yield each ``<topic>`` or ``<query>``: its number, and the text of each element in it. A root element is optional."""
    data = read_whole(path, name, report)
    topics, error = _parse_xml(data, name, None)
    if error is not None and expat.ErrorString(error.code) == expat.errors.XML_ERROR_JUNK_AFTER_DOC_ELEMENT:
        declaration = _DECLARATION.match(data)
        encoding = declaration[1].decode() if declaration and declaration[1] else None
        start = declaration.end() if declaration else 0
        lines = b"\n" * data.count(b"\n", 0, start)
        topics, error = _parse_xml(b"<topics>" + lines + data[start:] + b"</topics>", name, encoding)
    if error is not None:
        what = f"is not XML from here on ({expat.ErrorString(error.code)})"
        report.add(f"{name}:{error.lineno}", what, "correct the file")
    if topics.entities:
        report.add(name, "declares entities", "write their texts instead")
    for place, fields, outside in topics.topics:
        _add_outside_text(fields, outside, place, report, text_fields)
        yield Record(place, dict(_in_one_language(fields)))


def _parse_xml(data: bytes, name: str, encoding: str | None) -> tuple[_XmlTopics, expat.ExpatError | None]:
    topics = _XmlTopics(name, encoding)
    try:
        topics.parser.Parse(data, True)
    except expat.ExpatError as error:
        return topics, error
    return topics, None


def with_turns(record: Record) -> Iterator[Record]:
    """Yield a topic, or each turn of a conversation (TREC CAsT, iKAT) as the topic ``<topic>_<turn>``.

    A topic is a conversation if each of its turns has a number and an utterance.
    """
    turns: Any = first(record.fields, ("turn", "turns"))
    number = first(record.fields, TOPIC_IDS)
    if number is None or not isinstance(turns, list) or not turns or not all(map(_is_turn, turns)):
        yield record
        return
    topic = {key: value for key, value in record.fields.items() if key not in ("turn", "turns", *TOPIC_IDS)}
    for turn in turns:
        fields = topic | {key: value for key, value in turn.items() if key not in _TURN_IDS}
        fields |= {"qid": f"{number}_{first(turn, _TURN_IDS)}", "query": first(turn, _UTTERANCES)}
        yield Record(record.place, {key: value for key, value in fields.items() if key not in _UTTERANCES})


def _is_turn(turn: object) -> bool:
    """True for an object with a number and an utterance."""
    return isinstance(turn, dict) and None not in (first(turn, _TURN_IDS), first(turn, _UTTERANCES))
