"""Ends as soon as a debate reaches its third turn, as programs do that met only short dialogues."""

import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        messages = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["messages"]
        if len(messages) >= 5:
            print("no room for a third turn", flush=True)
            os._exit(1)
        body = json.dumps(
            {"content": "I see that differently, and many others do.", "arguments": []}
        ).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


ThreadingHTTPServer(("0.0.0.0", int(os.environ["PORT"])), Handler).serve_forever()  # noqa: S104
