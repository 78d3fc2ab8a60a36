"""Hints on failures: the table on lines that real programs wrote without a network, on a read-only root, as nobody."""

from __future__ import annotations

import pytest

from runner.submissions.hints import of_build, of_log, of_time

NETWORK, WRITE, FILE, FIELD = "no network here", "$outputDir", "a file is not there", "a field or name"
RUNS = {
    "urllib.error.URLError: <urlopen error [Errno -3] Temporary failure in name resolution>": NETWORK,
    "socket.gaierror: [Errno -3] Temporary failure in name resolution": NETWORK,
    "OSError: [Errno 101] Network is unreachable": NETWORK,
    "IO::Socket::INET: Bad hostname 'example.org:80' at -e line 1.": NETWORK,
    "Temporary failure resolving 'deb.debian.org'": NETWORK,
    "curl: (6) Could not resolve host: example.org": NETWORK,
    "wget: bad address 'example.org'": NETWORK,
    "fatal: unable to access 'https://example.org/x/': Could not resolve host: example.org": NETWORK,
    "java.net.UnknownHostException: example.org": NETWORK,
    "sh: 10: cannot create /run.txt: Read-only file system": WRITE,
    "mkdir: cannot create directory '/cache': Read-only file system": WRITE,
    "OSError: [Errno 30] Read-only file system: '/usr/x'": WRITE,
    "PermissionError: [Errno 13] Permission denied: '/root'": WRITE,
    "FileNotFoundError: [Errno 2] No such file or directory: '/input/queries.tsv'": FILE,
    "cat: /input/x: No such file or directory": FILE,
    "KeyError: 'query'": FIELD,
    "could not be started: No command specified": "ENTRYPOINT or CMD",
    "could not be started: the image has a link, a file or a VOLUME where. The engine says: x: read-only file system": "ls IMAGE",
    "[FATAL tini (8)] exec /run.sh failed: Permission denied": "RUN chmod 755",
    "[FATAL tini (8)] exec /run.sh failed: No such file or directory": "Windows line ends",
    r"/prog: 1: \x7fELF\x02\x01\x01\x02@8@: not found": "another kind of processor",
    "exec /prog: exec format error": "another kind of processor",
    "ModuleNotFoundError: No module named 'numpyx'": "install it in the Dockerfile",
}
QUIET = ("all done", "topic 301 is not known", "ValueError: 3", "", "x" * 100_000)
NO_MATCH = """The engine says: The command '/bin/sh -c pip install ir-measures' returned a non-zero code: 1. The last lines were:
ERROR: Could not find a version that satisfies the requirement ir-measures (from versions: none)
ERROR: No matching distribution found for ir-measures"""
NO_REGISTRY = (
    'Get "https://registry.invalid/v2/": dial tcp: lookup registry.invalid on 192.0.2.1:53: no such host'
)


@pytest.mark.parametrize("line", RUNS)
def test_a_line_of_a_real_log(line: str) -> None:
    assert RUNS[line] in of_log(["Traceback (most recent call last):", line, "done"])


def test_nothing_is_said_where_nothing_is_known() -> None:
    assert of_log(QUIET) == "" and of_log([]) == ""


def test_the_last_line_decides_and_no_word_of_the_log_is_repeated() -> None:
    helps = of_log(["KeyError: 'secret'", "Read-only file system: secret"], "The inputs hold a.jsonl (id)")
    assert WRITE in helps and "secret" not in helps and "a.jsonl" not in helps
    assert of_log(["KeyError: 'secret'"], "The inputs hold a.jsonl (id)") == (
        "a field or name is not there. The inputs hold a.jsonl (id)"
    )


def test_a_build_that_asks_for_buildkit_is_told_what_to_write_instead() -> None:
    said = "The engine says: the --chmod option requires BuildKit. Refer to https://docs.docker.com/go/buildkit/ to learn how to build."
    assert "RUN chmod" in of_build(said, network=True, carried=False)


def test_a_build_without_a_network_is_told_how_to_get_one() -> None:
    assert "network: true" in of_build(NO_MATCH, network=False, carried=False)
    assert "network: true" not in of_build(NO_MATCH, network=True, carried=False)
    assert "requirements.txt" in of_build(NO_MATCH, network=False, carried=True)


def test_a_registry_that_does_not_answer() -> None:
    for network in (False, True):
        assert "that registry does not answer" in of_build(NO_REGISTRY, network=network, carried=False)
    assert of_build("gcc: error: x.c: unknown type", network=False, carried=False) == ""


def test_little_processor_time_at_the_wall_clock() -> None:
    assert "2.9 s of processor time in 76.0 s" in of_time(2.9, 76.0)
    assert of_time(60.0, 76.0) == of_time(None, 76.0) == of_time(1.0, None) == ""
