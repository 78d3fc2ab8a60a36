"""Turn NeuCLIR's sample of reference reports into this task's datasets.

    python tasks/report-questions/convert.py report-generation-sample.eval.zh.jsonl [DEST]

The README says where the file is from; DEST defaults to ``datasets/`` beside this file. The text of a question is the whole reference
report of its request, each sentence with its full stop. A question that is there several times is one, with all of its answers;
questions about the collection itself are left out, because the reports do not say that. ``dev`` is the first request, ``test`` the
others. The output is a function of the source alone.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

FILE = "questions.jsonl"
QUESTIONS = {"dev": 5, "test": 13}


def main(source: Path, target: Path) -> None:
    requests = [json.loads(line) for line in source.open(encoding="utf-8")]
    for dataset, mine in (("dev", requests[:1]), ("test", requests[1:])):
        inputs, truths = [], []
        for request in mine:
            context = " ".join(sentence.strip().rstrip(".") + "." for sentence, _ in request["report"])
            right: dict[str, list[str]] = {}
            for question, answers in request["questions"]:
                if "collection" not in question:
                    right.setdefault(question, []).extend(answer for answer, _ in answers)
            for number, (question, answers) in enumerate(right.items(), 1):
                one = f"{request['request_id']}-{number}"
                inputs.append({"id": one, "context": context, "question": question})
                truths.append({"id": one, "answers": list(dict.fromkeys(answers))})
        if len(inputs) != QUESTIONS[dataset]:
            raise SystemExit(
                f"{source} is not the file that the README names: {len(inputs)} questions for {dataset}"
            )
        for side, rows in (("inputs", inputs), ("truths", truths)):
            path = target / dataset / side / FILE
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")


if __name__ == "__main__":
    here = Path(__file__).parent
    main(Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else here / "datasets")
