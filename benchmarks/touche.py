"""Both args.me baselines over a whole synthetic corpus in the five-file layout: time and memory.

``python -m benchmarks.touche [--arguments 387740] [--work FOLDER] [--python WITH_BM25S]`` prints a table, and ends
with 1 if a baseline takes more than 4 GiB. The corpus is written to FOLDER (default: a temporary one, about 1.5 GB)
and used again when it is there. bm25s comes from the baseline's own requirements, into a virtual environment in
FOLDER, unless ``--python`` names an interpreter that has it.

What is like args.me 2020-04-01: the number of arguments in each of the five files; one JSON object a file; the fields
and the form of ids; the mean length of 292 words that BEIR reports for its copy of the corpus (Thakur et al., NeurIPS
2021). What is our assumption: lengths are log-normal with sigma 1, between 5 and 5,000 words; words are drawn by
Zipf's law (exponent 1.05) from 300,000 invented ones, the 60 most frequent of which are English stop words, while the
words of the topics stand at ranks from 200 on; a conclusion has 3 to 12 words; one argument in twenty has two
premises; every other is PRO; each carries its premises again as ``sourceText``, as the originals carry their source.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import re
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.trec import cost

ROOT = Path(__file__).resolve().parents[1]
BASELINES = ROOT / "submissions" / "baselines"
TOPICS = ROOT / "tasks" / "touche-2021-task1" / "datasets" / "touche-2021" / "inputs" / "topics.xml"
# Arguments by file, and the name of the portal (all: 387,740).
FILES = {
    "debateorg": (338_620, "debate.org"),
    "debatepedia": (21_197, "debatepedia"),
    "debatewise": (14_353, "debatewise"),
    "idebate": (13_522, "idebate"),
    "parliamentary": (48, "canadian-parliament"),
}
ALL = sum(count for count, _ in FILES.values())
LIMIT = 4096  # MiB
SEED = 20_210_101
_MEAN, _SIGMA, _SHORTEST, _LONGEST = 292, 1.0, 5, 5000
_WORDS, _ZIPF, _FIRST_TOPIC_WORD = 300_000, 1.05, 200
_BATCH = 5000
_STOP = re.findall(
    r"\w+",
    """the of to and a in is that it for you as are not be this have on with they i or by if but an we can people was
    what there so all from at would do one your which more my has no because their about who will when how than should
    does he""",
)


def vocabulary() -> list[str]:
    """The words by falling frequency: stop words, invented ones, and from rank 200 those of the topics' titles."""
    titles = " ".join(re.findall(r"<title>(.*?)</title>", TOPICS.read_text(encoding="utf-8"))).lower()
    ours = sorted(set(re.findall(r"[a-z]{2,}", titles)) - set(_STOP))
    letters = "etaoinshrdlucmfwypvbgkjqxz"
    words = list(_STOP)
    number = 0
    while len(words) < _WORDS:
        if len(words) == _FIRST_TOPIC_WORD:
            words += ours
        digest = hashlib.sha256(f"word {number}".encode()).digest()
        length = 3 + digest[0] % 8
        words.append(
            "".join(letters[byte % 26] for byte in digest[1 : 1 + length]) + (f"{number}" * (length < 5))
        )
        number += 1
    return words[:_WORDS]


def arguments(count: int, domain: str, rng: Any, words: Any, cumulative: Any) -> Iterator[dict[str, Any]]:
    """``count`` arguments of one portal."""
    import math

    import numpy

    scale = math.log(_MEAN) - _SIGMA**2 / 2
    for start in range(0, count, _BATCH):
        n = min(_BATCH, count - start)
        lengths = numpy.clip(rng.lognormal(scale, _SIGMA, n).astype(int), _SHORTEST, _LONGEST)
        titles = rng.integers(3, 13, n)
        drawn = words[numpy.searchsorted(cumulative, rng.random(int(lengths.sum() + titles.sum())))].tolist()
        at = 0
        for i, (length, title) in enumerate(zip(lengths.tolist(), titles.tolist(), strict=True)):
            number = start + i
            digest = hashlib.sha256(f"{domain} {number}".encode()).hexdigest()
            conclusion = " ".join(drawn[at : at + title])
            text = " ".join(drawn[at + title : at + title + length])
            at += title + length
            half = len(text) // 2 if number % 20 == 0 else len(text)
            stance = "PRO" if number % 2 else "CON"
            yield {
                "id": f"S{digest[:8]}-A{digest[8:16]}",
                "conclusion": conclusion,
                "premises": [
                    {"text": part, "stance": stance, "annotations": []}
                    for part in (text[:half], text[half:])
                    if part
                ],
                "context": {
                    "sourceId": f"S{digest[:8]}",
                    "sourceTitle": f"{conclusion} | Synthetic Debates",
                    "discussionTitle": conclusion,
                    "sourceDomain": domain,
                    "mode": "discussion",
                    "acquisitionTime": "2019-04-18T12:00:00Z",
                    "sourceText": text,
                    "previousArgumentInSourceId": "",
                    "nextArgumentInSourceId": "",
                },
            }


def write_corpus(folder: Path, count: int = ALL) -> None:
    """Write the five files with ``count`` arguments in all (each its share, at least one), and topics.xml."""
    import numpy

    words = numpy.array(vocabulary(), dtype=object)
    weights = 1.0 / numpy.arange(1, len(words) + 1) ** _ZIPF
    cumulative = numpy.cumsum(weights / weights.sum())
    cumulative[-1] = 1.0
    rng = numpy.random.default_rng(SEED)
    folder.mkdir(parents=True, exist_ok=True)
    for name, (share, domain) in FILES.items():
        with (folder / f"{name}.json").open("w", encoding="utf-8") as file:
            file.write('{"arguments":[')
            n = max(1, round(share * count / ALL))
            for i, argument in enumerate(arguments(n, domain, rng, words, cumulative)):
                file.write((",\n" if i else "\n") + json.dumps(argument))
            file.write("\n]}\n")
    (folder / "topics.xml").write_bytes(TOPICS.read_bytes())


def interpreter(work: Path) -> str:
    """A Python that has bm25s: this one, or one in a virtual environment in ``work``."""
    if importlib.util.find_spec("bm25s") is not None:
        return sys.executable
    folder = work / "venv"
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        venv.create(folder, with_pip=True, clear=True)
        requirements = BASELINES / "argsme-bm25" / "requirements.txt"
        pip = [str(python), "-m", "pip", "install", "--quiet", "--require-hashes", "-r", str(requirements)]
        subprocess.run(pip, check=True, timeout=600)
        (folder / "ready").touch()
    return str(python)


def main() -> int:
    """Command line. Returns 1 if a baseline takes more memory than it may."""
    parser = argparse.ArgumentParser(description="the args.me baselines at full scale")
    parser.add_argument("--arguments", type=int, default=ALL)
    parser.add_argument("--work", type=Path)
    parser.add_argument("--python")
    parser.add_argument("--write", type=Path, help="write the corpus to this folder and end")
    options = parser.parse_args()
    if options.write:
        write_corpus(options.write, options.arguments)
        return 0
    with tempfile.TemporaryDirectory(prefix="touche-") as temporary:
        work: Path = options.work or Path(temporary)
        corpus = work / f"corpus-{options.arguments}"
        if not (corpus / "topics.xml").exists():  # written last
            # In a process of its own: what this one holds would count as its children's peak.
            again = [sys.executable, "-m", "benchmarks.touche", "--write", str(corpus)]
            subprocess.run([*again, "--arguments", str(options.arguments)], check=True, cwd=ROOT)
        size = sum(p.stat().st_size for p in corpus.iterdir()) / 1e9
        print(f"{options.arguments:,} arguments, {size:.2f} GB\n")
        print("| baseline | wall s | CPU s | peak MiB | lines |\n|---|---|---|---|---|")
        worst = 0.0
        for name in ("argsme-bm25", "argsme-dirichlet"):
            out = work / f"out-{name}"
            out.mkdir(parents=True, exist_ok=True)
            bm25 = name == "argsme-bm25"
            python = (options.python or interpreter(work)) if bm25 else sys.executable
            program = BASELINES / name / f"{name.replace('-', '_')}.py"
            spent = cost([python, str(program), "-i", str(corpus), "-o", str(out)])
            with (out / "run.txt").open("rb") as run:
                lines = sum(1 for _ in run)
            print(
                f"| {name} | {spent.wall:.1f} | {spent.cpu:.1f} | {spent.peak:.0f} | {lines:,} |", flush=True
            )
            worst = max(worst, spent.peak)
    return 1 if worst > LIMIT else 0


if __name__ == "__main__":
    raise SystemExit(main())
