import json
from pathlib import Path

import common

for line in Path(common.INPUT, "queries.jsonl").read_text().splitlines():
    print(json.loads(line)["title"])
