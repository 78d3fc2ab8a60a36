"""Runs inside the sandbox (standard library only) and reports as JSON what the walls let through."""

import ctypes
import errno
import json
import multiprocessing
import os
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
found["fill"] = {p: fill(p) for p in ("/tmp", "/dev/shm", "/out")}
found["many"] = {p: many(p) for p in ("/tmp", "/out")}
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
