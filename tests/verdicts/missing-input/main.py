from pathlib import Path

import common

print(Path(common.INPUT, "topics.jsonl").read_text())
