"""A debating software that retrieves as participants' systems do: the official client and plain requests, in turns.

It is handed to a container as text; plain Python beside the client, which lies in /client.
"""

import json
import os
import sys
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

sys.path.insert(0, "/client")
URL, INDEX = os.environ["ARGUMENTS_URL"], os.environ["ARGUMENTS_INDEX"]
ASKED = {"query": "Claim number 1 is right"}
VECTORS = ["text_embedding_stella", "supports_embedding_stella", "attacks_embedding_stella"]


def official(name):
    """As the official baseline in Python."""
    module = __import__(name)
    client = module.Elasticsearch(URL, max_retries=0, request_timeout=20)
    answer = client.search(index=INDEX, query={"match": {"attacks": ASKED}}, size=1, source_excludes=VECTORS)
    try:
        client.search(index="another", query={"match_all": {}})
    except module.NotFoundError as error:
        assert error.error == "index_not_found_exception"
    return answer["hits"]["hits"]


def fetched(path, body):
    """As a client that knows nothing of Elasticsearch."""
    head = {"Content-Type": "application/json"}
    request = urllib.request.Request(URL + path, json.dumps(body).encode(), head)
    with urllib.request.urlopen(request, timeout=20) as answer:
        return json.load(answer)["hits"]["hits"]


WAYS = {
    "elasticsearch8": lambda: official("elasticsearch8"),
    "elasticsearch9": lambda: official("elasticsearch9"),
    # The official baseline in JavaScript; the task's page; GenIRSim's own retrieval.
    "fetch": lambda: fetched(
        f"/{INDEX}/_search?size=1", {"query": {"match": {"attacks": ASKED}}, "_source": {"excludes": VECTORS}}
    ),
    "curl": lambda: fetched(
        f"/{INDEX}/_search?pretty&size=10", {"query": {"match": {"supports": {**ASKED, "operator": "or"}}}}
    ),
    "genirsim": lambda: fetched(
        f"/{INDEX}/_search?size=2", {"query": {"match": {"text": ASKED}}, "_source": True}
    ),
    "knn": lambda: fetched(
        f"/{INDEX}/_search",
        {"knn": {"field": VECTORS[0], "query_vector": [0.5] * 1024, "k": 3, "num_candidates": 10}},
    ),
}


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_POST(self):
        data = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        turn = (len(data["messages"]) + 1) // 2
        name = list(WAYS)[turn - 1]
        hits = WAYS[name]()
        shown = [{"id": hit["_id"], "text": hit["_source"]["text"]} for hit in hits]
        body = json.dumps({"content": name, "arguments": shown}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
