"""Runs as the software of a room (standard library only): serves on 8080, then tries to get out, and reports."""

import errno
import json
import os
import socket
import stat
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

found = {"uid": os.getuid()}


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        answer = b"software"
        if self.path == "/search":
            answer = fetch()
        if self.path == "/flood":
            answer = json.dumps(flood()).encode()
        if self.path == "/big":
            answer = b"x" * (10 << 20)
        if self.path == "/slow":
            time.sleep(7)
        if self.path == "/end":
            os._exit(5)
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


def error_of(action):
    """0 when it worked, else the errno."""
    try:
        action()
    except OSError as error:
        return error.errno or -1
    return 0


def connect(address, port=80, kind=socket.SOCK_STREAM):
    with socket.socket(socket.AF_INET, kind) as s:
        s.settimeout(1)
        s.connect((address, port))
        if kind == socket.SOCK_STREAM and s.getsockname() == s.getpeername():
            raise ConnectionRefusedError(errno.ECONNREFUSED, "it met itself")  # its own port by chance


def bind(port):
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        s.bind(("127.0.0.1", port))
        s.listen()


def unix(address):
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(1)
        s.connect(address)


def fetch():
    with socket.create_connection(("127.0.0.1", 9200), timeout=5) as s:
        s.sendall(b"GET / HTTP/1.0\r\n\r\n")
        parts = []
        while part := s.recv(4096):
            parts.append(part)
    return b"".join(parts).rpartition(b"\r\n")[2]


def flood():
    """Hold as many connections to the search as there can be."""
    held, error = [], 0
    for _ in range(400):
        s = socket.socket()
        s.settimeout(0.2)
        try:
            s.connect(("127.0.0.1", 9200))
        except OSError as e:
            error = e.errno or -1
            s.close()
            break
        held.append(s)
    found["held"] = held  # they stay open until /release
    threading.Timer(3.0, lambda: [s.close() for s in found.pop("held")]).start()
    return [len(held), error]


def sockets_on_disk():
    seen = []
    for folder, names, files in os.walk("/"):
        if folder == "/":
            names[:] = [n for n in names if n != "proc"]
        for name in files:
            path = os.path.join(folder, name)
            try:
                if stat.S_ISSOCK(os.lstat(path).st_mode):
                    seen.append(path)
            except OSError:
                pass
    return seen


server = ThreadingHTTPServer(("127.0.0.1", 8080), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()

found["interfaces"] = sorted(os.listdir("/sys/class/net"))
addresses = ["192.0.2.1", "169.254.169.254", "172.17.0.1", *sys.argv[1:]]
found["connect"] = {a: error_of(lambda a=a: connect(a)) for a in addresses}
found["datagram"] = {a: error_of(lambda a=a: connect(a, 53, socket.SOCK_DGRAM)) for a in addresses}
try:
    found["dns"] = socket.getaddrinfo("example.org", 80)
except OSError as error:
    found["dns"] = str(type(error).__name__)
found["open_ports"] = [p for p in range(1, 65536) if error_of(lambda p=p: connect("127.0.0.1", p)) == 0]
found["take_search_port"] = error_of(lambda: bind(9200))
found["search"] = fetch().decode()
found["sockets"] = sockets_on_disk()
names = []
with open("/proc/net/unix") as f:
    for line in f.read().splitlines()[1:]:
        words = line.split(maxsplit=7)
        if len(words) > 7:
            names.append(words[7])
found["abstract"] = [n for n in names if n.startswith("@")]
found["named"] = {n: error_of(lambda n=n: unix(n)) for n in names if not n.startswith("@")}
found["other_session"] = error_of(lambda: unix("\0other-session"))
found["beside"] = error_of(lambda: unix("\0beside"))
found["processes"] = []
for pid in filter(str.isdigit, os.listdir("/proc")):
    with open(f"/proc/{pid}/comm") as f:
        found["processes"].append(f.read().strip())
with open("/proc/self/mountinfo") as f:
    found["mounts"] = [line.split()[4] for line in f]
found["errors"] = {"unreachable": errno.ENETUNREACH, "refused": errno.ECONNREFUSED}
print(json.dumps(found), flush=True)
threading.Event().wait()
