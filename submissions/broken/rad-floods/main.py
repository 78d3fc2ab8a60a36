"""Says far too much: many words and invented arguments at first, from the third turn on more bytes than are taken."""

import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        messages = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["messages"]
        times = 60 if len(messages) < 5 else 20_000
        body = json.dumps(
            {
                "content": "No, and no again. " * 25,
                "arguments": [{"id": f"99999.{n}", "text": "Because I say so."} for n in range(times)],
            }
        ).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


ThreadingHTTPServer(("0.0.0.0", int(os.environ["PORT"])), Handler).serve_forever()  # noqa: S104
