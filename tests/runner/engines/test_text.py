"""What tools write, as people are shown it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.engines.docker.starting import their_fault
from runner.engines.text import Lines, plain


def shown(*pieces: str) -> list[str]:
    lines = Lines()
    return [line for piece in pieces for line in lines.of(piece)] + list(lines.end())


@pytest.mark.parametrize(
    ("pieces", "lines"),
    [
        # As an engine sends what goes to stderr.
        (["\x1b[91mfind: \x1b[0m", "\x1b[91m/x\x1b[0m", "\x1b[91m: No such file\n\x1b[0m"], ["find: /x: No such file"]),
        (["\x1b[2J\x1b[1;31mred\x1b[0m\n", "\x1b]0;a title\x07plain\n"], ["red", "plain"]),
        (["\x1b]0;a title that never ends\nnext\n"], ["next"]),
        (["10 %\r50 %", "\r100 %\r\n"], ["100 %"]),
        (["\n\n  \n", "no end"], ["no end"]),
        (["a\x07b\u202ec\x00\x1b\n"], ["a\\x07b\\u202ec\\x00\\x1b"]),
        (["\x1b(Bx\x9b31my\x1bMz\n"], ["xyz"]),
    ],
)  # fmt: skip
def test_lines_are_whole_and_without_escape_sequences(pieces: list[str], lines: list[str]) -> None:
    assert shown(*pieces) == lines


def test_a_line_without_an_end_does_not_grow() -> None:
    lines = Lines(limit=100)
    for _ in range(1000):
        assert list(lines.of("x" * 1000)) == []
    assert len(next(lines.end())) <= 101


@given(st.text())
def test_nothing_that_a_terminal_obeys_is_left(text: str) -> None:
    assert all(line.isprintable() for line in shown(text))
    assert plain(plain(text)) == plain(text) or "\x1b" in plain(text)


VOLUME = "/var/lib/docker/volumes/proctor-data-x/_data/passwd"


@pytest.mark.parametrize(
    ("words", "is_theirs"),
    [
        (f'error mounting "{VOLUME}" to rootfs at "/etc/passwd": stat {VOLUME}: no such file or directory', False),
        (f"error preparing rootfs: stat {VOLUME}: no such file or directory: unknown", False),
        (f"invalid mount config for type \"bind\": bind source path does not exist: stat {VOLUME}: no such file or directory", False),
        ("open /var/lib/docker/overlay2/x/merged/etc/passwd: input/output error", False),
        ("open /var/lib/docker/overlay2/x/merged/etc/group: no space left on device", False),
        ("open /var/lib/docker/overlay2/x/merged/etc/passwd: not a directory", True),
        ("open /var/lib/docker/overlay2/x/merged/etc/passwd: read-only file system", True),
        ("open /var/lib/docker/overlay2/x/merged/etc/passwd: too many levels of symbolic links", True),
        ('exec: "run": stat run: no such file or directory: unknown', True),
        ("container_linux.go:380: stat data: no such file or directory: unknown", True),
    ],
)  # fmt: skip
def test_a_missing_volume_and_a_broken_disk_are_not_the_fault_of_an_image(
    words: str, is_theirs: bool
) -> None:
    assert (their_fault(words) is not None) is is_theirs
