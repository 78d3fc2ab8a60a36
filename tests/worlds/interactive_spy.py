"""A debating software that looks for a way out of its room before it answers, and answers with what it found.

It is handed to a container as text; plain Python.
"""

import json
import os
import socket
import stat
import sys
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

OUTSIDE = (sys.argv[1], int(sys.argv[2]))  # a server that only the gateway can reach
PATHS = ("/gateway/gateway.sock", "/user/user.sock", "/software/software.sock", "/search/search.sock")


def error_of(action):
    """ "worked", or how it failed."""
    try:
        return f"worked: {action()}"[:200]
    except OSError as error:
        return type(error).__name__


def connect(address):
    with socket.create_connection(address, 1):
        return "connected"


def unix(path):
    with socket.socket(socket.AF_UNIX) as one:
        one.settimeout(1)
        one.connect(path)
        return "connected"


def asked(head):
    """What is said at the one port that is not the software's own, to a request with this head."""
    with socket.create_connection(("127.0.0.1", 9200), 3) as one:
        one.settimeout(3)
        one.sendall(head.encode() + b"\r\nHost: x\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
        return one.recv(200).split(b"\r\n")[0].decode()


def listening():
    """Ports that somebody listens on in this network namespace."""
    ports = set()
    for name in ("tcp", "tcp6"):
        with open(f"/proc/net/{name}") as file:
            rows = [line.split() for line in file][1:]
        ports |= {int(row[1].rpartition(":")[2], 16) for row in rows if row[3] == "0A"}
    return sorted(ports)


def sockets():
    seen = []
    for folder, names, files in os.walk("/"):
        if folder == "/":
            names[:] = [name for name in names if name != "proc"]
        for name in files:
            path = os.path.join(folder, name)
            if not os.path.islink(path) and stat.S_ISSOCK(os.lstat(path).st_mode):
                seen.append(path)
    return seen


def look():
    out = f"http://{OUTSIDE[0]}:{OUTSIDE[1]}/v1/models"
    with open("/proc/self/mountinfo") as file:
        mounts = sorted({line.split()[4] for line in file})
    with open("/proc/net/unix") as file:
        abstract = [line.split()[-1] for line in file if line.split()[-1].startswith("@")]
    return {
        "outside": error_of(lambda: connect(OUTSIDE)),
        "fetched": error_of(lambda: urllib.request.urlopen(out, timeout=2).read()),
        "named": error_of(lambda: socket.getaddrinfo("gateway", 80)),
        "unix": {path: error_of(lambda path=path: unix(path)) for path in PATHS},
        "listening": listening(),
        "sockets": sockets(),
        "abstract": abstract,
        "mounts": mounts,
        "processes": len([name for name in os.listdir("/proc") if name.isdigit()]),
        "interfaces": sorted(os.listdir("/sys/class/net")),
        "environment": dict(os.environ),
        "asked": {
            head: error_of(lambda head=head: asked(head))
            for head in (
                "POST /user-sim/api/chat HTTP/1.1",
                "POST /v1/chat/completions HTTP/1.1",
                "GET /usage HTTP/1.1",
                f"GET {out} HTTP/1.1",
                f"CONNECT {OUTSIDE[0]}:{OUTSIDE[1]} HTTP/1.1",
            )
        },
    }


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        found = {"heard": dict(self.headers), **look()}
        body = json.dumps({"content": json.dumps(found), "arguments": []}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
