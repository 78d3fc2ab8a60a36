"""Runs inside the sandbox (standard library only) and reports as JSON what the walls let through."""

import ctypes
import errno
import fcntl
import json
import mmap
import multiprocessing
import os
import resource
import socket
import stat
import subprocess
import threading
import time

found = {}
libc = ctypes.CDLL(None, use_errno=True)


def attempt(action):
    """0 when it worked, else the errno."""
    try:
        action()
    except OSError as error:
        return error.errno or -1
    return 0


def call(number, *arguments):
    ctypes.set_errno(0)
    result = libc.syscall(number, *arguments)
    return ctypes.get_errno() if result == -1 else 0


def connect(address):
    with socket.socket() as s:
        s.settimeout(1)
        s.connect((address, 80))


def fill(folder):
    path = os.path.join(folder, "fill")
    size, error = 0, 0
    with open(path, "wb", 0) as f:
        try:
            while True:
                size += f.write(b"x" * 65536)
        except OSError as e:
            error = e.errno
    os.unlink(path)
    return [size, error]


def many(folder):
    made, error = [], 0
    try:
        for n in range(100_000):
            path = os.path.join(folder, f"many{n}")
            open(path, "x").close()
            made.append(path)
    except OSError as e:
        error = e.errno
    for path in made:
        os.unlink(path)
    return [len(made), error]


def program(folder):
    path = os.path.join(folder, "program")
    with open("/bin/true", "rb") as source, open(path, "wb") as f:
        f.write(source.read())
    os.chmod(path, 0o6777)
    try:
        return attempt(lambda: subprocess.run([path], check=False))
    finally:
        os.unlink(path)


def forks():
    children, error = [], 0
    try:
        while len(children) < 2000:
            pid = os.fork()
            if pid == 0:
                time.sleep(30)
                os._exit(0)
            children.append(pid)
    except OSError as e:
        error = e.errno
    for pid in children:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
    return [len(children), error]


def threads():
    stop = threading.Event()
    made, error = [], ""
    try:
        while len(made) < 2000:
            thread = threading.Thread(target=stop.wait)
            thread.start()
            made.append(thread)
    except RuntimeError as e:
        error = str(e)
    stop.set()
    for thread in made:
        thread.join()
    return [len(made), error]


def files():
    made, error = [], 0
    try:
        while len(made) < 100_000:
            made.append(os.open("/dev/null", os.O_RDONLY))
    except OSError as e:
        error = e.errno
    for fd in made:
        os.close(fd)
    return [len(made), error]


def square(x):
    return x * x


def loopback():
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            s, _ = server.accept()
            with s:
                s.sendall(b"pong")

        thread = threading.Thread(target=serve)
        thread.start()
        with socket.create_connection(server.getsockname(), timeout=5) as s:
            answer = s.recv(9).decode()
        thread.join()
        return answer


def peek(path):
    """What a path of /proc or /sys tells: bytes of a file, names in a folder."""
    try:
        if os.path.isdir(path):
            return len(os.listdir(path))
        with open(path, "rb") as f:
            return len(f.read(4096))
    except OSError as e:
        return -e.errno


def option(level, name, family=socket.AF_INET):
    """The errno of setting an option; numbers may have bits that the kernel does not read."""
    with socket.socket(family) as s:
        return call(54, s.fileno(), level, name, buffer, 16)


def untouched():
    """Whether mincore says nothing of a page in memory."""
    page = mmap.mmap(-1, 4096)
    page[0] = 1
    answer = ctypes.create_string_buffer(b"?", 1)
    start = ctypes.addressof(ctypes.c_char.from_buffer(page))
    return [call(27, ctypes.c_void_p(start), 4096, answer), answer.raw == b"?"]


found["uid"], found["gid"], found["groups"] = os.getuid(), os.getgid(), os.getgroups()
with open("/proc/self/status") as f:
    found["status"] = dict(line.strip().split(":\t", 1) for line in f if ":\t" in line)
found["hostname"], found["home"] = socket.gethostname(), os.environ["HOME"]
found["setuid_program"] = subprocess.run(
    ["su", "-c", "true"], capture_output=True, stdin=subprocess.DEVNULL
).returncode
found["write"] = {
    p: attempt(lambda p=p: open(p, "a").close())
    for p in ("/x", "/etc/passwd", "/usr/x", "/in/x", "/in/queries.txt", "/dev/x", "/sys/x", "/run/x")
}
found["interfaces"] = sorted(os.listdir("/sys/class/net"))
found["connect"] = {
    a: attempt(lambda a=a: connect(a)) for a in ("172.17.0.1", "172.29.77.1", "192.0.2.1", "169.254.169.254")
}
found["sockets"] = {
    "netlink": attempt(lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)),
    "vsock": attempt(lambda: socket.socket(40, socket.SOCK_STREAM, 0)),
    "packet": attempt(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)),
    "alg": attempt(lambda: socket.socket(38, socket.SOCK_SEQPACKET, 0)),
    "raw": attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)),
    "mptcp": attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)),
    "mptcp6": attempt(lambda: socket.socket(socket.AF_INET6, socket.SOCK_STREAM, 262)),
    "udplite": attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM, 136)),
    "ping": attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM, 1)),
    "ping6": attempt(lambda: socket.socket(socket.AF_INET6, socket.SOCK_DGRAM, 58)),
    "sctp": attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM, 132)),
    "mptcp, high bit": call(41, 2, 1, ctypes.c_uint64(1 << 32 | 262)),
    "netlink, high bit": call(41, ctypes.c_uint64(1 << 32 | 16), 3, 0),
}
buffer = ctypes.create_string_buffer(256)
found["calls"] = {  # x86-64 numbers
    "io_uring_setup": call(425, 1, buffer),
    "unshare": call(272, 0x10000000),
    "setns": call(308, 0, 0),
    "ptrace": call(101, 0, 0, 0, 0),
    "keyctl": call(250, 0, -3, 0),
    "bpf": call(321, 0, buffer, 64),
    "userfaultfd": call(323, 0),
    "mount": call(165, b"none", b"/tmp", b"tmpfs", 0, None),
    "perf_event_open": call(298, buffer, 0, -1, -1, 0),
    "clone_newuser": call(56, 0x10000000 | 17, 0, 0, 0, 0),
    "setuid": call(105, 0),
    "mknod": call(133, b"/tmp/node", stat.S_IFCHR | 0o666, 0x103),
    "shmget": call(29, 0, 4096, 0o1600),
    "personality": call(135, 0x0040000),
    "open_by_handle_at": call(304, -1, buffer, 0),
    "clone3": call(435, buffer, 64),
}
high = 1 << 32
found["options"] = {
    "SO_ATTACH_FILTER": option(1, 26),
    "SO_ATTACH_BPF": option(1, 50),
    "SO_ATTACH_REUSEPORT_CBPF": option(1, 51),
    "SO_ATTACH_REUSEPORT_EBPF": option(1, 52),
    "SO_ATTACH_FILTER of a unix socket": option(1, 26, socket.AF_UNIX),
    "TCP_ULP": option(6, 31),
    "TCP_MD5SIG": option(6, 14),
    "UDP_ENCAP": option(17, 100),
    "high bit of level": option(ctypes.c_uint64(high | 1), 26),
    "high bit of name": option(1, ctypes.c_uint64(high | 26)),
    "IP_ADD_MEMBERSHIP": option(0, 35),
    "MCAST_JOIN_GROUP": option(0, 42),
    "IPV6_JOIN_GROUP": option(41, 20, socket.AF_INET6),
    "SO_RCVBUF": option(1, 8),
}
nowhere = ctypes.c_void_p(1 << 40)
found["quiet"] = {  # calls that the kernel would refuse: 0 says that it never saw them
    "fadvise64": call(221, -1, 0, 0, 4),
    "readahead": call(187, -1, 0, 4096),
    "fsync": call(74, -1),
    "fdatasync": call(75, -1),
    "syncfs": call(306, -1),
    "sync_file_range": call(277, -1, 0, 0, 7),
    "msync(MS_SYNC)": call(26, nowhere, 4096, 4),
    "madvise(MADV_PAGEOUT)": call(28, nowhere, 4096, 21),
    "madvise(MADV_COLD)": call(28, nowhere, 4096, 20),
}
# Nobody waits for a disk: 3,000 of them took two seconds and everybody's disk with them.
began = time.monotonic()
for _ in range(20_000):
    os.sync()
found["sync"] = time.monotonic() - began
found["mincore"] = untouched()
found["absent"] = {
    "io_setup": call(206, 1, buffer),
    "io_submit": call(209, 0, 0, buffer),
    "io_getevents": call(208, 0, 0, 0, buffer, None),
    "cachestat": call(451, 0, buffer, buffer, 0),
    "pidfd_open": call(434, os.getpid(), 0),
}


def read_option(level, name):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        return call(55, s.fileno(), level, name, buffer, ctypes.byref(ctypes.c_int(64)))


def watch(mask):
    descriptor = libc.inotify_init1(0)
    try:
        return call(254, descriptor, b"/tmp", mask)
    finally:
        os.close(descriptor)


with open("/proc/self/ns/mnt") as namespace, socket.socket(socket.AF_UNIX) as s:
    found["counters"] = {  # of the kernel, which only grow
        "SO_COOKIE": read_option(1, 57),
        "SO_NETNS_COOKIE": read_option(1, 71),
        "SO_PEERPIDFD": read_option(1, 77),
        "SO_COOKIE, high bit of level": read_option(ctypes.c_uint64(high | 1), 57),
        "SO_COOKIE, high bit of name": read_option(1, ctypes.c_uint64(high | 57)),
        "SO_PASSPIDFD": call(54, s.fileno(), 1, 76, buffer, 4),
        "CLONE_PIDFD": call(56, 0x1000 | 17, 0, buffer, 0, 0),
        "IN_MOVED_FROM": watch(0x40),
        "IN_MOVED_TO": watch(0x80),
        "IN_ALL_EVENTS": watch(0xFFF),
        "IN_MOVED_TO, high bit": watch(ctypes.c_uint64(high | 0x80)),
        "STATX_MNT_ID_UNIQUE": call(332, -100, b"/tmp", 0, 0x4000, buffer),
        "statmount": call(457, buffer, buffer, 256, 0),
        "listmount": call(458, buffer, buffer, 1, 0),
        "name_to_handle_at": call(303, -100, b"/tmp", buffer, buffer, 0),
        "NS_GET_MNTNS_ID": call(16, namespace.fileno(), 0x8008B705, buffer),
        "NS_GET_ID": call(16, namespace.fileno(), 0x8008B70D, buffer),
    }
    found["allowed"] = {
        "SO_TYPE": read_option(1, 3),
        "SO_RCVBUF": read_option(1, 8),
        "IN_CLOSE_WRITE": watch(0x8),
        "IN_CREATE | IN_DELETE": watch(0x300),
        "statx": call(332, -100, b"/tmp", 0, 0x1FFF, buffer),
        "FIOCLEX": call(16, namespace.fileno(), 0x5451, 0),
        "terminal": call(16, namespace.fileno(), 0x5401, buffer),
    }
with open("/in/queries.txt", "rb") as f:
    vector = (ctypes.c_uint64 * 2)(ctypes.addressof(buffer), 16)
    found["preadv2"] = {
        flags: call(327, f.fileno(), vector, 1, 0, 0, flags) for flags in (0, 0x08, 0x80, 0x88, 0x40)
    }
    found["fcntl"] = {
        "F_SETLEASE": attempt(lambda: fcntl.fcntl(f, 1024, fcntl.F_RDLCK)),
        "F_NOTIFY": call(72, f.fileno(), 1026, 1),
        "F_NOTIFY, high bit": call(72, f.fileno(), ctypes.c_uint64(high | 1026), 1),
        "F_GETFL": attempt(lambda: fcntl.fcntl(f, fcntl.F_GETFL)),
        "flock": attempt(lambda: fcntl.flock(f, fcntl.LOCK_SH)),
    }
hidden = """
/proc/locks /proc/vmstat /proc/diskstats /proc/interrupts /proc/softirqs /proc/pressure
/proc/key-users /proc/config.gz /proc/cmdline /proc/loadavg /proc/partitions /proc/swaps
/proc/zoneinfo /proc/buddyinfo /proc/sys/fs/aio-nr /proc/sys/fs/file-nr /proc/sys/fs/inode-nr
/proc/sys/fs/dentry-state /proc/sys/kernel/random/boot_id /sys/block /sys/class/block /sys/dev/block
/sys/kernel /sys/fs/ext4 /sys/module /sys/firmware /sys/devices/pci0000:00
/proc/fs /proc/irq /proc/sys/fs/quota /sys/devices/system/cpu/cpu0/cpuidle /sys/devices/virtual/block /proc/kcore /proc/timer_list /sys/devices/system/node/node0/vmstat
"""
found["seen"] = {path: peek(path) for path in hidden.split()}
found["rlimits"] = {
    name: resource.getrlimit(getattr(resource, "RLIMIT_" + name))[1]
    for name in ("MSGQUEUE", "SIGPENDING", "MEMLOCK", "CORE", "NOFILE")
}
found["fill"] = {p: fill(p) for p in ("/tmp", "/dev/shm", "/out")}
found["many"] = {p: many(p) for p in ("/tmp", "/dev/shm", "/out")}
found["exec_tmp"], found["exec_out"] = program("/tmp"), program("/out")
with open("/tmp/sparse", "wb") as f:
    found["sparse"] = attempt(lambda: os.ftruncate(f.fileno(), 1 << 40))
os.unlink("/tmp/sparse")
found["forks"], found["threads"], found["files"] = forks(), threads(), files()
found["processes"] = []
for pid in filter(str.isdigit, os.listdir("/proc")):
    with open(f"/proc/{pid}/comm") as f:
        found["processes"].append(f.read().strip())
found["docker_socket"] = any(os.path.exists(p) for p in ("/var/run/docker.sock", "/run/docker.sock"))
with multiprocessing.get_context("fork").Pool(2) as pool:
    found["pool"] = pool.map(square, range(3))
found["loopback"] = loopback()
with open("/in/queries.txt") as f:
    found["read"] = f.read()

# What is left for the collector: everything but a good file.
os.chdir("/out")
os.symlink("/etc/shadow", "run.txt")
os.mkfifo("pipe")
open("setuid", "w").close()
os.chmod("setuid", 0o6777)
os.link("setuid", "hard")
open("line\nbreak\x1b[31m", "w").close()
open(b"\xff\xfe", "w").close()
top = os.getcwd()
try:
    for _ in range(500):
        os.mkdir("deep")
        os.chdir("deep")
except OSError as error:
    assert error.errno == errno.ENOSPC
os.chdir(top)
print(json.dumps(found))
