"""Which images a Dockerfile uses, in every way that a builder may read it."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.engines.dockerfile_syntax import UnclearError, instructions, read_dockerfile
from runner.model.config import BASES
from runner.submissions.dockerfile import MAX_BYTES, sources, triggers, unproven_additions


def names(text: str, **arguments: str) -> list[tuple[int, str]]:
    return [(source.line, source.name) for source in sources(text, arguments) if not source.trouble]


def troubles(text: str, **arguments: str) -> list[int]:
    return sorted({source.line for source in sources(text, arguments) if source.trouble})


@pytest.mark.parametrize(("text", "found"), [
    ("FROM base", [(1, "base")]),
    ("\ufeff  from\tbase\r\n", [(1, "base")]),
    ("FROM --platform=linux/amd64 base AS build\nFROM BUILD\nCOPY --from=Build a b\nCOPY --from=0 a b", [(1, "base")]),
    ("FROM scratch\nCOPY --chown=1:1 --from=other a b", [(2, "other")]),
    ("FROM base\nRUN --mount=type=bind,from=other,target=/x --network=none ls /x", [(1, "base"), (2, "other")]),
    ("FROM base\nONBUILD COPY --from=other a b", [(1, "base"), (2, "other")]),
    ("FROM base\nonbuild run --mount=from=other ls", [(1, "base"), (2, "other")]),
    ("FROM base AS a\nCOPY --from=b x y\nFROM base AS b", [(1, "base"), (2, "b"), (3, "base")]),
    ("FROM base AS a\nCOPY --from=a x y", [(1, "base"), (2, "a")]),
    ("FROM base\nADD --from=Other:TAG a b", [(1, "base"), (2, "Other:TAG")]),
    # continued lines, comments and blank lines in them
    ("FR\\\nOM \\\n# no\n\n   other", [(1, "other")]),
    ("FROM base\nCOPY \\\n  --from=other a b", [(1, "base"), (2, "other")]),
    ("FROM base\nRUN echo \\\n # no\nCOPY --from=other a b", [(1, "base"), (4, "other")]),
    ("FROM base\nRUN echo \\\\\nCOPY --from=other a b", [(1, "base"), (3, "other")]),
    ("# escape=`\nFROM base\nRUN dir c:\\\nCOPY --from=other a b", [(2, "base"), (4, "other")]),
    ("# syntax=docker/dockerfile:1\n# escape=`\nFROM `\nother", [(3, "other")]),
    # arguments
    ("ARG X=other\nFROM $X", [(2, "other")]),
    ("ARG X\nFROM ${X:-other}", [(2, "other")]),
    ("ARG X=base\nFROM ${X:+other}", [(2, "other")]),
    ("ARG X='base' Y=\"o${X}\"\nARG Z=$Y:1\nFROM \"${Z}\"", [(3, "obase:1")]),
    ("ARG X\nARG Y=other\nFROM ${X:-${Y}}", [(3, "other")]),
    ("FROM base\nARG X=other\nFROM base:$$", [(1, "base")]),
])  # fmt: skip
def test_what_is_used(text: str, found: list[tuple[int, str]]) -> None:
    assert names(text) == found


def test_build_arguments_come_before_defaults() -> None:
    assert names("ARG X=base\nFROM ${X}", X="other") == [(2, "other")]
    assert names("ARG X\nFROM ${X:-base}", X="other") == [(2, "other")]
    assert names("ARG X=base\nFROM ${X}", Y="other") == [(2, "base")]
    assert names("ARG X=base\nFROM ${X}", X="$Y") == [(2, "$Y")]  # not filled in again


@pytest.mark.parametrize(("text", "line"), [
    ("FROM", 1),
    ("FROM ${X:-base}", 1),  # nobody declares it; a builder may know it all the same
    ("FROM base\nARG X=base\nFROM $X", 3),
    ("ARG X=one\nARG X\nFROM ${X:-two}", 3),
    ("ARG X=a\nFROM ${X%a}", 2),
    ("ARG X=a\nFROM ${X#a}base", 2),
    ("FROM ba\\se", 1),
    ("FROM 'base", 1),
    ('FROM --platform="x base y" other', 1),
    ("FROM base\nCOPY --chown=\"a b\" --from=other x y", 2),
    ("FROM base\nCOPY --fr\\om=other x y", 2),
    ("ARG X=other\nFROM base\nCOPY --from=$X x y", 3),
    ("FROM base\nCOPY --from=0 x y", 2),
    ("FROM base\nCOPY --from=9999999999 x y", 2),
    ("FROM base\nCOPY --from= x y", 2),
    ("FROM base\nONBUILD FROM other", 2),
    ("FROM base\nRUN <<EOF\nFROM scratch AS other\nEOF\nCOPY --from=other a b", 3),
    ("FROM base\nRUN <<A <<B\nB\nA\nFROM scratch AS other\nB\nCOPY --from=other a b", 5),
    ("FROM base\nRUN <<-'E'\n E\nARG X=1\n\tE\n", 4),
    ("FROM base\n" + "#" * MAX_BYTES, 1),
])  # fmt: skip
def test_what_cannot_be_told_is_said(text: str, line: int) -> None:
    assert line in troubles(text)


def test_what_people_write_is_read_without_trouble() -> None:
    """A usual file: two stages, comments inside instructions, a shift in the shell, a syntax line (nothing reads it)."""
    text = """# syntax=docker/dockerfile:1
# A comment
ARG BASE_IMAGE=python:3.11-slim
ARG TAG

FROM --platform=$BUILDPLATFORM ${BASE_IMAGE} AS build
ARG TAG=x
RUN apt-get update && \\
    # what it needs
    apt-get install -y gcc && \\

    echo $((1<<4)) "${HOME}" `date` "from x import y"
COPY --chown=$USER:$USER . /src

FROM ${BASE_IMAGE}
COPY --from=build /src /src
COPY --from=0 --chown=1:1 /src/x /x
RUN cat <<EOF > /y
words
EOF
"""
    assert names(text) == [(6, "python:3.11-slim"), (15, "python:3.11-slim")] and not troubles(text)


def test_triggers_of_a_base_image() -> None:
    found = triggers(
        ["COPY --from=other a b", "COPY --from=build a b", "COPY --from=0 a b", "RUN make", "FROM x"],
        7,
        frozenset({"build"}),
    )
    assert [(s.line, s.name) for s in found] == [(7, "other"), (7, "x")]


def test_the_bundled_submissions_keep_the_rules() -> None:
    """What teams copy builds where submissions are taken in."""
    files = [*Path(__file__).parents[3].joinpath("submissions").glob("*/*/Dockerfile")]
    assert len(files) > 20
    for file in files:
        found = sources(file.read_text("utf-8"), {"BASE_IMAGE": BASES[1]})
        assert {source.name for source in found} == {BASES[1]} and not any(s.trouble for s in found), file
        assert {source.name for source in sources(file.read_text("utf-8"))} == {BASES[0]}, file


@pytest.mark.parametrize(("content", "line"), [
    (b"FROM base\rCOPY --from=other a b", 1),
    (b"FROM base\nRUN true #\rCOPY --from=other a b\n", 2),
    (b"FROM base\r\n# text\r\r\nUSER x\r\n", 2),
    (b"FROM base\r\nUSER x\r", 2),
])  # fmt: skip
def test_a_carriage_return_alone_is_refused(tmp_path: Path, content: bytes, line: int) -> None:
    (tmp_path / "Dockerfile").write_bytes(content)
    with pytest.raises(UnclearError) as caught:
        read_dockerfile(tmp_path / "Dockerfile")
    assert caught.value.line == line


def test_lines_may_end_with_both_characters(tmp_path: Path) -> None:
    text = "FROM base\nRUN true \\\n  && true\nCOPY --from=other a b\n"
    for name, content in (("lf", text), ("crlf", text.replace("\n", "\r\n"))):
        (tmp_path / name).write_bytes(content.encode())
    lf, crlf = (read_dockerfile(tmp_path / name) for name in ("lf", "crlf"))
    lines = [list(instructions(text, "\\", doubled=True, indented=True)) for text in (lf, crlf)]
    assert lines[0] == lines[1] and len(lines[0]) == 3
    assert names(lf) == names(crlf) == [(1, "base"), (4, "other")]


@pytest.mark.parametrize(("lines", "line"), [
    ("ADD http://host/x /x", 2),
    ("ADD HTTPS://host/x /x", 2),
    ("add ftp://host/x /x", 2),
    ("ADD git@host:x/y.git /x", 2),
    ("ADD https://host/x.git#main /x", 2),
    ("ADD ssh://git@host/x /x", 2),
    ("ADD github.com/x/y /x", 2),
    ("ADD --checksum=sha256:00 --chown=1:1 https://host/x /x", 2),
    ("ADD ./file http://host/x /x/", 2),
    ('ADD ["http://host/x", "/x"]', 2),
    ('ADD ["\\u0068ttp://host/x", "/x"]', 2),
    ('ADD ["http://host/x", /x]', 2),  # the builder reads it as words
    ("ADD $X /x", 2),
    ("ARG X=http:\nADD ${X}//host/x /x", 3),
    ("ADD ${X:-http://host/x} /x", 2),
    ("ADD 'http://host/x' /x", 2),
    ("ADD h\\ttp://host/x /x", 2),
    ("A\\\nDD \\\n\n# no\n  http://host/x /x", 2),
    ("RUN echo \\\\\nADD http://host/x /x", 3),
    ("RUN echo \\\n # no\nADD http://host/x /x", 4),
    ("ONBUILD ADD http://host/x /x", 2),
    ("onbuild onbuild add http://host/x /x", 2),
    ("ADD <<EOF /x\nEOF", 2),
    ("RUN <<'E\\'\nx\nE\\\nADD http://host/x /x", 5),
])  # fmt: skip
def test_additions_that_may_fetch_something(lines: str, line: int) -> None:
    assert line in {number for number, _ in unproven_additions(f"FROM base\n{lines}\n")}


def test_the_escape_directive_hides_no_addition() -> None:
    text = "# escape=`\nFROM base\nADD `\n  http://host/x /x\nRUN dir c:\\\nADD http://host/y /y\n"
    assert {(3, "http://host/x"), (6, "http://host/y")} <= set(unproven_additions(text))


@pytest.mark.parametrize("line", [
    "ADD file.tar.gz /x",
    "ADD ./$X /x",
    "ADD src/${X} /x/",
    "ADD --chown=$USER *.py a-b_c.txt /x/",
    'ADD ["./a file", "/x"]',
    "ADD /etc/x /x",
    "COPY $X /x",
    "RUN curl http://host/x",
    "RUN git \\\n  add http://host/x",
    "# ADD http://host/x /x",
])  # fmt: skip
def test_additions_of_the_context(line: str) -> None:
    assert unproven_additions(f"FROM base\n{line}\n") == []
