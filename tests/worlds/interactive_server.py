"""A debating software that behaves as its argument says. It is handed to a container as text; plain Python."""

import http.client
import json
import os
import socket
import sys
import threading
import time
import urllib.parse
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HOW = sys.argv[1]
STATE = {"requests": 0}


def retrieve(text):
    """What the argument index says, as the official baselines ask it."""
    url = f"{os.environ['ARGUMENTS_URL']}/{os.environ['ARGUMENTS_INDEX']}/_search?_source_excludes=x"
    body = json.dumps({"query": {"match": {"attacks": {"query": text}}}, "size": 1}).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=5) as answer:
        hits = json.load(answer)["hits"]["hits"]
    return [dict(hit["_source"], id=hit["_id"], key=n) for n, hit in enumerate(hits, 1)]


def flood():
    """Hold as many connections to the index as there can be, and ask it without an end."""
    held = []
    while len(held) < 400:
        try:
            one = socket.create_connection(("127.0.0.1", 9200), 1)
            one.sendall(b"POST /arguments/claimrev/_search HTTP/1.1\r\nContent-Length: 100000\r\n\r\n{")
            held.append(one)
        except OSError:
            time.sleep(0.05)
    time.sleep(600)


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def give(self, body, status=200):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        STATE["requests"] += 1
        data = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if "simulation" in data:
            return self.judge(data)
        messages = data["messages"]
        turn, claim = (len(messages) + 1) // 2, messages[0]["content"]
        print("turn", turn, flush=True)
        fault = claim.partition("fault:")[2].split(".")[0].split()[0] if "fault:" in claim else HOW
        getattr(self, fault.replace("-", "_"), self.good)(turn, messages[-1]["content"])

    def good(self, turn, text):
        hits = retrieve(text)
        said = hits[0]["text"] if hits else "There is nothing to be said for that."
        self.give(json.dumps({"content": said, "arguments": hits}).encode())

    def thinks(self, turn, text):
        """Ask the index twice over one connection, and think for longer than many servers keep an idle one."""
        address = urllib.parse.urlsplit(os.environ["ARGUMENTS_URL"])
        body = json.dumps({"query": {"match": {"attacks": {"query": text}}}, "size": 1}).encode()
        path = f"{address.path}/{os.environ['ARGUMENTS_INDEX']}/_search"
        index = http.client.HTTPConnection(address.hostname, address.port, timeout=20)
        index.auto_open = True
        for pause in (0, 6.5):
            time.sleep(pause)
            index.request("POST", path, body, {"Content-Type": "application/json"})
            hits = json.loads(index.getresponse().read())["hits"]["hits"]
            index.auto_open = False  # the same connection, or none
        hits = [dict(hit["_source"], id=hit["_id"], key=n) for n, hit in enumerate(hits, 1)]
        self.give(json.dumps({"content": "I have thought.", "arguments": hits}).encode())

    def judge(self, data):
        whole = "userTurnIndex" not in data
        self.give(json.dumps({"score": None if whole else 1, "explanation": self.path}).encode())

    def dies(self, turn, text):
        if turn == 3:
            os._exit(7)
        self.good(turn, text)

    def eats_memory(self, turn, text):
        if turn == 2:
            hoard = [b"x" * (1 << 20) for _ in range(4096)]
            self.give(str(len(hoard)).encode())
        self.good(turn, text)

    def forks(self, turn, text):
        if turn == 2:
            for _ in range(2000):
                try:
                    if os.fork() == 0:
                        time.sleep(600)
                except OSError:
                    break
        self.give(b'{"content": "still here"}')

    def hangs(self, turn, text):
        time.sleep(600)

    def late(self, turn, text):
        time.sleep(15)
        self.good(turn, text)

    def drips(self, turn, text):
        self.send_response(200)
        self.end_headers()
        while True:
            self.wfile.write(b" ")
            self.wfile.flush()
            time.sleep(0.05)

    def html(self, turn, text):
        self.give(b"<!doctype html><h1>It works!</h1>")

    def empty(self, turn, text):
        self.give(b"")

    def large(self, turn, text):
        self.give(b'{"content": "' + b"x" * 10_000_000 + b'"}')

    def broken(self, turn, text):
        self.give(b'{"content": ')

    def wrong(self, turn, text):
        self.give(b'{"content": ["a"], "arguments": {}}')

    def error(self, turn, text):
        self.give(b"<h1>Internal Server Error</h1>", 500)

    def many(self, turn, text):
        self.give(json.dumps({"content": "x", "arguments": [{"id": "7.1", "text": "y"}] * 100_000}).encode())

    def closes(self, turn, text):
        self.close_connection = True

    def kills_the_index(self, turn, text):
        with socket.create_connection(("127.0.0.1", 9200), 5) as one:
            one.sendall(b"POST /die HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
            one.recv(100)
        self.give(b'{"content": "what index?"}')


class Server(ThreadingHTTPServer):
    request_queue_size = 64
    daemon_threads = True


if HOW == "never-listens":
    time.sleep(600)
if HOW == "exits":
    sys.exit(3)
if HOW == "floods":
    threading.Thread(target=flood, daemon=True).start()
    time.sleep(1)
Server(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
