"""A hostile system that moves the kernel's counters by hidden amounts, and one that reads them. Standard library only.

``send`` moves each counter by ``value * step``, with the values of ``/hidden/values``. ``read`` prints the counters as JSON. A counter
that the sandbox refuses is reported as null. Both pin themselves to the first processor, where numbers come in batches.
"""

import _thread
import contextlib
import ctypes
import json
import mmap
import os
import socket
import struct
import sys

libc = ctypes.CDLL(None, use_errno=True)


def call(number, *arguments):
    result = libc.syscall(number, *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), "refused")
    return result


def make_pipes(count):
    for _ in range(count):
        reader, writer = os.pipe()
        os.close(reader)
        os.close(writer)


def make_memory_files(count):
    for _ in range(count):
        os.close(os.memfd_create("x"))


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
    """Send half as many packets, because the kernel answers each: the port is closed."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for _ in range(count // 2):
            sender.sendto(b"x", ("127.0.0.1", 9))


def rename_files(count):
    open("/tmp/a", "w").close()
    for _ in range(count // 2):
        os.rename("/tmp/a", "/tmp/b")
        os.rename("/tmp/b", "/tmp/a")


def read_cookie():
    one, other = socket.socketpair()
    with one, other:
        return struct.unpack("Q", one.getsockopt(socket.SOL_SOCKET, 57, 8))[0]


def ask_cookies(count):
    for _ in range(count):
        read_cookie()


def read_pipe_inode():
    reader, writer = os.pipe()
    try:
        return os.fstat(reader).st_ino
    finally:
        os.close(reader)
        os.close(writer)


def read_shared_memory_inode():
    """From the table of mappings, which needs no descriptor."""
    with mmap.mmap(-1, 4096), open("/proc/self/maps") as maps:
        return next(int(line.split()[4]) for line in maps if "/dev/zero" in line)


def read_processes():
    with open("/proc/stat") as accounts:
        return next(int(line.split()[1]) for line in accounts if line.startswith("processes"))


def read_session():
    with open("/proc/self/autogroup") as group:
        return int(group.read().split()[0].rpartition("-")[2])


def read_packets():
    with open("/proc/self/net/softnet_stat") as accounts:
        return int(accounts.readline().split()[0], 16)


def read_pidfd_inode():
    file = os.pidfd_open(os.getpid())
    try:
        return os.fstat(file).st_ino
    finally:
        os.close(file)


def read_rename_cookie():
    watch = call(294, 0)  # inotify_init1
    try:
        call(254, watch, b"/tmp", 0x80)  # inotify_add_watch, IN_MOVED_TO
        rename_files(2)
        return struct.unpack_from("iIII", os.read(watch, 4096))[2]
    finally:
        os.close(watch)


COUNTERS = {  # name: step, how it is moved, how it is read
    "inodes": (1 << 15, make_pipes, read_pipe_inode),
    "memory inodes": (1 << 15, make_memory_files, read_shared_memory_inode),
    "processes": (1 << 11, start_threads, read_processes),
    "sessions": (1 << 6, start_sessions, read_session),
    "packets": (1 << 14, send_packets, read_packets),
    "pidfd inodes": (0, start_threads, read_pidfd_inode),  # the threads of "processes" move it
    "rename cookies": (1 << 12, rename_files, read_rename_cookie),
    "socket cookies": (1 << 4, ask_cookies, read_cookie),
}


def main():
    os.sched_setaffinity(0, {0})
    if sys.argv[1] == "send":
        with open("/hidden/values") as file:
            values = json.load(file)
        for name, (step, move, _) in COUNTERS.items():
            with contextlib.suppress(OSError):
                move(values[name] * step)
        return
    readings = {}
    for name, (_, _, read) in COUNTERS.items():
        try:
            readings[name] = read()
        except OSError:
            readings[name] = None
    print(json.dumps(readings))


if __name__ == "__main__":
    main()
