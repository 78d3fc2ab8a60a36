"""Move the kernel's counters by random amounts, so that a later run cannot tell how far an earlier run moved them.

The kernel counts inodes, processes and packets for the whole machine, and every container can read some of these counters.
A blinded run can move such a counter by an amount that depends on hidden data; a later public run can read the difference.
Counters that software does not need are refused (``seccomp.json``, :mod:`runner.engines.masks`). The others are moved here.

At most log2(1 + M / N) bits remain if a run can move a counter by up to M and the program adds an amount drawn from N values.
``docs/explanation/threat-model.md`` has the numbers.
"""

from __future__ import annotations

from typing import Any

PROGRAM = r"""
import _thread, os, random, socket, time

SPANS = {'inodes': 1 << 19, 'memory_inodes': 1 << 19, 'threads': 1 << 14, 'sessions': 1 << 10, 'packets': 1 << 18}
BATCH = 1024  # inode numbers that the kernel reserves for a processor at once (get_next_ino, shmem)
draw = random.SystemRandom().randrange

def make_pipes(count):
    for _ in range(count):
        reader, writer = os.pipe()
        os.close(reader)
        os.close(writer)

def make_memory_files(count):
    for _ in range(count):
        os.close(os.memfd_create('x'))

def start_threads(count):
    for _ in range(count):
        ended = _thread.allocate_lock()
        ended.acquire()
        _thread.start_new_thread(ended.release, ())
        ended.acquire()

def start_sessions(count):
    for _ in range(count):
        child = os.fork()
        if child == 0:
            os.setsid()
            os._exit(0)
        os.waitpid(child, 0)

def send_packets(count):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for _ in range(count):
            sender.sendto(b'x', ('127.0.0.1', 9))

def take_time(begun, share):
    'Work until as much time has passed as the largest amount takes: else the duration tells the amount.'
    end = begun + (time.monotonic() - begun) / share
    while time.monotonic() < end:
        os.close(os.eventfd(0))

def move(action, span):
    least = span // 20  # the time of the largest amount cannot be extrapolated from smaller ones
    begun, amount = time.monotonic(), least + draw(span)
    action(amount)
    take_time(begun, amount / (least + span))

def read_pipe_inode():
    reader, writer = os.pipe()
    try:
        return os.fstat(reader).st_ino
    finally:
        os.close(reader)
        os.close(writer)

def read_memory_inode():
    file = os.memfd_create('x')
    try:
        return os.fstat(file).st_ino
    finally:
        os.close(file)

def move_counters():
    'Returns on how many processors each counter of inodes was moved, and how many processors there are.'
    processors = sorted(os.sched_getaffinity(0))
    random.SystemRandom().shuffle(processors)
    moved = {'processors': len(processors), 'inodes': 0, 'memory_inodes': 0}
    kinds = {
        'inodes': (make_pipes, read_pipe_inode),
        'memory_inodes': (make_memory_files, read_memory_inode),
    }
    before = {}
    for processor in processors:
        os.sched_setaffinity(0, {processor})
        before[processor] = {name: read() for name, (_, read) in kinds.items()}
    move(make_pipes, SPANS['inodes'])
    move(make_memory_files, SPANS['memory_inodes'])
    move(start_threads, SPANS['threads'])
    move(start_sessions, SPANS['sessions'])
    for processor in processors:  # each gets numbers from a new batch, from a random place in it on
        os.sched_setaffinity(0, {processor})
        for name, (make, read) in kinds.items():
            make(BATCH + draw(BATCH))
            moved[name] += read() != before[processor][name]
        move(send_packets, max(SPANS['packets'] // len(processors), 1 << 13))
    os.sched_setaffinity(0, processors)
    return moved
"""


def judge(moved: dict[str, Any] | None) -> str:
    """Return what is wrong with a report of the program; empty if every counter was moved on every processor."""
    if not moved:
        return "the counters of its kernel were not moved"
    for name in ("inodes", "memory_inodes"):
        if moved[name] != moved["processors"]:
            return f"the counter {name} moved on {moved[name]} of {moved['processors']} processors"
    return ""
