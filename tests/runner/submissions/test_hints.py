"""Hints on failures: the table on lines that real programs wrote without a network, on a read-only root, as nobody."""

from __future__ import annotations

import pytest

from runner.submissions.hints import TABLE, of_build, of_log, of_time, row_of_log

WRITE = "$outputDir"
# A log that real programs wrote in the sandbox, by the key of its hint: each gets this hint and no other.
LOGS: dict[str, tuple[str, ...]] = {
    "network": (
        "urllib.error.URLError: <urlopen error [Errno -3] Temporary failure in name resolution>",
        "socket.gaierror: [Errno -3] Temporary failure in name resolution",
        "OSError: [Errno 101] Network is unreachable",
        "IO::Socket::INET: Bad hostname 'example.org:80' at -e line 1.",
        "Temporary failure resolving 'deb.debian.org'",
        "curl: (6) Could not resolve host: example.org",
        "wget: bad address 'example.org'",
        "fatal: unable to access 'https://example.org/x/': Could not resolve host: example.org",
        "java.net.UnknownHostException: example.org",
    ),
    "loopback": (
        "OSError: [Errno 97] Address family not supported by protocol",
        "java.net.SocketException: Address family not supported by protocol",
        "java.net.SocketException: Protocol family unavailable",
        "[W socket.cpp:436] [c10d] The server socket has failed to listen on [::]:29500 (errno: 97 - Address family not supported by protocol).",
        "zmq.error.ZMQError: Address family not supported by protocol",
        "listen tcp 127.0.0.1:8080: socket: address family not supported by protocol",
    ),
    "model": (
        "FileNotFoundError: [Errno 2] No such file or directory: '/tmp/.cache/model'",
        "OSError: We couldn't connect to 'https://huggingface.co' to load the files, and couldn't find them in the cached files.",
        "huggingface_hub.errors.LocalEntryNotFoundError: Cannot find an appropriate cached snapshot folder",
        "huggingface_hub.errors.OfflineModeIsEnabled: Cannot reach https://huggingface.co/x: offline mode is enabled.",
        "  Please use the NLTK Downloader to obtain the resource:",
    ),
    "write": (
        "sh: 10: cannot create /run.txt: Read-only file system",
        "mkdir: cannot create directory '/cache': Read-only file system",
        "OSError: [Errno 30] Read-only file system: '/usr/x'",
    ),
    "permission": (
        "PermissionError: [Errno 13] Permission denied: '/root'",
        "PermissionError: [Errno 13] Permission denied: '/opt/model/w.bin'",
        "java.nio.file.AccessDeniedException: /opt/x",
    ),
    "file": (
        "FileNotFoundError: [Errno 2] No such file or directory: '/input/queries.tsv'",
        "cat: /input/x: No such file or directory",
        "java.nio.file.NoSuchFileException: /input/x",
    ),
    "field": ("KeyError: 'query'",),
    "no-command": ("could not be started: No command specified",),
    "mounts": (
        "could not be started: the image has a link, a file or a VOLUME where. The engine says: x: read-only file system",
    ),
    "volume": (
        "could not be started: the image has a VOLUME or a home folder that cannot be copied: it is too large",
    ),
    "start": (
        "could not be started: its working directory is no folder and cannot be made: correct WORKDIR. The engine says: permission denied",
    ),
    "not-executable": ("[FATAL tini (8)] exec /run.sh failed: Permission denied",),
    "not-there": ("[FATAL tini (8)] exec /run.sh failed: No such file or directory",),
    "processor": (r"/prog: 1: \x7fELF\x02\x01\x01\x02@8@: not found", "exec /prog: exec format error"),
    "package": ("ModuleNotFoundError: No module named 'numpyx'",),
    "arguments": (
        "sh: 0: Illegal option --",
        "sh: 1: --input: not found",
        "/bin/sh: 0: Illegal option -i",
        "bash: --: invalid option",
        "bash: line 1: --input: command not found",
        "[FATAL tini (7)] exec --input failed: No such file or directory",
    ),
    "line-ends": (
        r"refused file: run.txt\x0d",
        r"/app/run.sh: 2: /app/run.sh: python3\x0d: not found",
        r"/app/run.sh: line 2: $'\r': command not found",
        r"env: 'python3\x0d': No such file or directory",
        "/app/run.sh: /bin/sh^M: bad interpreter: No such file or directory",
        r"FileNotFoundError: [Errno 2] No such file or directory: '/app/x.txt\r'",
        r"/app/run.sh: 2: cd: can't cd to /app\x0d",
        r"/app/run.sh: 1: set: Illegal option -\x0d",
    ),
    "threads": (
        "RuntimeError: can't start new thread",
        "java.lang.OutOfMemoryError: unable to create native thread: possibly out of memory or process/resource limits reached",
        "OpenBLAS blas_thread_init: pthread_create failed for thread 5 of 64: Resource temporarily unavailable",
        "BlockingIOError: [Errno 11] Resource temporarily unavailable",
        "runtime: failed to create new OS thread (have 12 already; errno=11)",
        "sh: 1: Cannot fork",
        "bash: fork: retry: Resource temporarily unavailable",
    ),
    "space": (
        "OSError: [Errno 28] No space left on device",
        "OSError: [Errno 28] No space left on device: '/dev/shm/x'",
        "RuntimeError: unable to write to file </torch_7_1>: No space left on device (28)",
        "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).",
        "OSError: [Errno 27] File too large",
    ),
    "tmp-exec": (
        "PermissionError: [Errno 13] Permission denied: '/tmp/x'",
        "sh: 1: /tmp/x: Permission denied",
        "java.lang.UnsatisfiedLinkError: /tmp/libjni1.so: /tmp/libjni1.so: failed to map segment from shared object: Operation not permitted",
        "[7] Error loading Python lib '/tmp/_MEIa/libpython3.11.so': dlopen: /tmp/_MEIa/libpython3.11.so: failed to map segment from shared object",
    ),
    "sqlite": (
        "sqlite3.OperationalError: unable to open database file",
        "sqlite3.OperationalError: attempt to write a readonly database",
        "[SQLITE_CANTOPEN] Unable to open the database file",
    ),
    "root": (
        "chown: changing ownership of '/out': Operation not permitted",
        "su: cannot set groups: Operation not permitted",
        'sudo: The "no new privileges" flag is set, which prevents sudo from running as root.',
        'error: failed switching to "nobody": operation not permitted',
        "PermissionError: [Errno 1] Operation not permitted: '/opt/x'",
        "This script must be run as root; are you root?",
    ),
    "ascii": (
        "UnicodeEncodeError: 'ascii' codec can't encode character '\\xe4' in position 3: ordinal not in range(128)",
        "UnicodeDecodeError: 'ascii' codec can't decode byte 0xc3 in position 1: ordinal not in range(128)",
        "java.nio.charset.UnmappableCharacterException: unmappable character (0xC3) for encoding US-ASCII",
    ),
    "user": (
        "KeyError: 'getpwuid(): uid not found: 20001'",
        "whoami: cannot find name for user ID 20001: No such file or directory",
    ),
}
QUIET = ("all done", "topic 301 is not known", "ValueError: 3", "", "x" * 100_000)
NO_MATCH = """The engine says: The command '/bin/sh -c pip install ir-measures' returned a non-zero code: 1. The last lines were:
ERROR: Could not find a version that satisfies the requirement ir-measures (from versions: none)
ERROR: No matching distribution found for ir-measures"""
NO_REGISTRY = (
    'Get "https://registry.invalid/v2/": dial tcp: lookup registry.invalid on 192.0.2.1:53: no such host'
)


@pytest.mark.parametrize(("key", "line"), [(key, line) for key, lines in LOGS.items() for line in lines])
def test_a_line_of_a_real_log_gets_its_own_hint(key: str, line: str) -> None:
    row = row_of_log(["Traceback (most recent call last):", line, "done"])
    assert row is not None and row.key == key
    assert row.run in of_log([line]) or "{" in row.run


def test_each_hint_for_a_run_has_a_log() -> None:
    assert {row.key for row in TABLE if row.run} == set(LOGS)
    assert len({row.key for row in TABLE}) == len(TABLE)


def test_a_hint_names_the_limits_of_the_run() -> None:
    limits = {"pids": 300, "shm": 32 << 20, "tmp": 1 << 30, "output": 5 << 20}
    limits |= {"tmp_exec": False, "loopback": False}
    assert "300" in of_log(LOGS["threads"][:1], limits=limits)
    assert "256" in of_log(LOGS["threads"][:1])
    said = of_log(LOGS["space"][:1], limits=limits)
    assert all(size in said for size in ("32 MiB", "1 GiB", "5 MiB"))
    for key, limit in (("tmp-exec", "tmp_exec"), ("loopback", "loopback")):
        assert f"limits.{limit}" in of_log(LOGS[key][:1], limits=limits)
        row = row_of_log(LOGS[key][:1], limits | {limit: True})
        assert row is None or row.key != key


def test_nothing_is_said_where_nothing_is_known() -> None:
    assert of_log(QUIET) == "" and of_log([]) == ""


def test_the_last_line_decides_and_no_word_of_the_log_is_repeated() -> None:
    helps = of_log(["KeyError: 'secret'", "Read-only file system: secret"], "The inputs hold a.jsonl (id)")
    assert WRITE in helps and "secret" not in helps and "a.jsonl" not in helps
    helps = of_log(["KeyError: 'secret'"], "The inputs hold a.jsonl (id)")
    assert helps.endswith("a.jsonl (id)") and "secret" not in helps


def test_a_build_that_asks_for_buildkit_is_told_what_to_write_instead() -> None:
    said = "The engine says: the --chmod option requires BuildKit. Refer to https://docs.docker.com/go/buildkit/ to learn how to build."
    assert "RUN chmod" in of_build(said, network=True, carried=False)


def test_a_build_without_a_network_is_told_how_to_get_one() -> None:
    assert "network: true" in of_build(NO_MATCH, network=False, carried=False)
    assert "network: true" not in of_build(NO_MATCH, network=True, carried=False)
    assert "requirements.txt" in of_build(NO_MATCH, network=False, carried=True)


def test_a_registry_that_does_not_answer() -> None:
    for network in (False, True):
        assert "registry" in of_build(NO_REGISTRY, network=network, carried=False)
    assert of_build("gcc: error: x.c: unknown type", network=False, carried=False) == ""


def test_little_processor_time_at_the_wall_clock() -> None:
    assert "2.9 s" in of_time(2.9, 76.0) and "76.0 s" in of_time(2.9, 76.0)
    assert of_time(60.0, 76.0) == of_time(None, 76.0) == of_time(1.0, None) == ""
