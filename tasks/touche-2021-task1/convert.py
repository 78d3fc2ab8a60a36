"""Make this task's datasets from the files that others publish.

    python tasks/touche-2021-task1/convert.py sample SOURCE [DEST]   the args.me sample, its topics and judgments
    python tasks/touche-2021-task1/convert.py touche SOURCE [DEST]   topics and relevance judgments of 2021
    python tasks/touche-2021-task1/convert.py corpus INPUTS [ZIPS]   unpack the corpus into INPUTS, list its ids

DEST defaults to ``datasets/`` beside this file. README.md says what SOURCE has to hold, where that comes from and
under which licence. What is written is a function of the source alone; a source with another SHA-256 is refused.

``corpus`` unpacks the five archives of the args.me corpus (Zenodo 3734893) that lie in the folder ZIPS (default:
``INPUTS/downloads``) and writes ``INPUTS/docids.txt``, with which runs are checked for invented documents. Without
archives it lists the ids of the corpus files that lie in INPUTS already. The files are streamed.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import shutil
import sys
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

SAMPLE = {
    "sample-with-title-for-lnc2.jsonl": "fa6f2fd8ba0b6f4379ddaf0ed2001af9d1d77e87579d11182125d8671be83cb0",
    "topics.beir-v1.0.0-webis-touche2020.test.tsv.gz": "7b9b264ce5d2eca6ee35b9ebf780c6c1b0de7c665f67640f43ce673083f4f6a3",
    "qrels.beir-v1.0.0-webis-touche2020.test.txt": "c919d5afb251678825f5dec39f63cbf8540cc59b0450bbd069c5a8e1b468af27",
}
TOUCHE = {
    "topics-task-1-2021.xml": "5b1b120989144a32671bced496d93c931a742a2d9935b351afbede7d61959b6d",
    "touche2021-task1-51-100-relevance.qrels": "890e97c93cdea570000dac571bb53b3d45ffc1a09d276cc69355f9105d4e191a",
}
PARTS = ("debateorg.json", "debatepedia.json", "debatewise.json", "idebate.json", "parliamentary.json")
WHOLE = "args-me.json"
SYNTHETIC = "# synthetic: drawn from the ids, not judged by anybody; see README.md\n"
_HEAD = re.compile(r'\s*\{\s*"arguments"\s*:\s*\[')
_GAP = re.compile(r"[\s,]*")
_PIECE = 1 << 20
_LONGEST = 64 << 20


def checked(source: Path, expected: dict[str, str]) -> list[bytes]:
    """The contents of the named files. Raises OSError, and ValueError when one has another SHA-256."""
    contents = []
    for name, digest in expected.items():
        data = (source / name).read_bytes()
        if hashlib.sha256(data).hexdigest() != digest:
            raise ValueError(f"{name} is not the file that README.md names (another SHA-256)")
        contents.append(data)
    return contents


def sample_arguments(lines: bytes) -> dict[str, str]:
    """Id and text of every argument of the sample, in file order.

    Upstream repeats each text one to four times under ids that end in ``_____1`` to ``_____4``; the first is it.
    """
    arguments: dict[str, str] = {}
    for line in lines.splitlines():
        record = json.loads(line)
        name, times = record["docid"].rsplit("_____", 1)
        if times == "1":
            arguments[name] = record["text"]
    return arguments


def args_me(arguments: dict[str, str]) -> str:
    """The arguments as one file of the corpus format, with one argument a line.

    Upstream has put conclusion and premise together, so both are in the one premise; stance and context are not
    known and stay empty.
    """
    rows = (
        json.dumps(
            {"id": name, "conclusion": "", "premises": [{"text": text}], "context": {}}, ensure_ascii=False
        )
        for name, text in arguments.items()
    )
    return '{"arguments":[\n' + ",\n".join(rows) + "\n]}\n"


def topics_xml(rows: Sequence[Sequence[str]]) -> str:
    """topics.xml as Touché distributes it, from (number, title)."""
    body = "".join(
        f"<topic>\n<number>{escape(number)}</number>\n<title>{escape(title)}</title>\n</topic>\n"
        for number, title in rows
    )
    return f"<topics>\n{body}</topics>\n"


def synthetic_quality(relevance: str) -> str:
    """Invented quality judgments of the same pairs in the same order, to try the second table with.

    The grade of a pair is the first byte of SHA-256 of ``synthetic quality:<topic>:<document>``, modulo 4.
    """
    out = [SYNTHETIC]
    for line in relevance.splitlines():
        topic, _, document, _ = line.split()
        grade = hashlib.sha256(f"synthetic quality:{topic}:{document}".encode()).digest()[0] % 4
        out.append(f"{topic} 0 {document} {grade}\n")
    return "".join(out)


def sample(source: Path, dest: Path) -> None:
    """Write ``dest/sample``: the judgments are those of arguments that are in the sample."""
    lines, topics, qrels = checked(source, SAMPLE)
    arguments = sample_arguments(lines)
    rows = [line.split("\t", 1) for line in gzip.decompress(topics).decode().splitlines()]
    relevance = "".join(
        line + "\n" for line in qrels.decode().splitlines() if line.strip() and line.split()[2] in arguments
    )
    inputs, truths = dest / "sample" / "inputs", dest / "sample" / "truths"
    _write(inputs / WHOLE, args_me(arguments))
    _write(inputs / "topics.xml", topics_xml(rows))
    _write(inputs / "docids.txt", "".join(f"{name}\n" for name in arguments))
    _write(truths / "relevance.qrels", relevance)
    _write(truths / "quality.qrels", synthetic_quality(relevance))


def touche(source: Path, dest: Path) -> None:
    """Write ``dest/touche-2021``: topics and relevance judgments, unchanged."""
    topics, relevance = checked(source, TOUCHE)
    _write(dest / "touche-2021" / "inputs" / "topics.xml", topics.decode())
    _write(dest / "touche-2021" / "truths" / "relevance.qrels", relevance.decode())


def corpus(inputs: Path, zips: Path) -> int:
    """Unpack the archives, if there are any, and write docids.txt; returns how many arguments there are."""
    for name in PARTS:
        archive = zips / f"{Path(name).stem}.zip"
        if archive.is_file():
            with zipfile.ZipFile(archive) as packed, packed.open(name) as file:
                part = inputs / f"{name}.part"
                with part.open("wb") as target:
                    shutil.copyfileobj(file, target, 1 << 20)
            part.replace(inputs / name)
    names = [name for name in PARTS if (inputs / name).is_file()]
    if len(names) != len(PARTS):
        names = [WHOLE]  # then all in one, or it is missing
    ids: dict[str, None] = {}
    for name in names:
        ids.update(dict.fromkeys(argument_ids(inputs / name)))
    _write(inputs / "docids.txt", "".join(f"{i}\n" for i in ids))
    return len(ids)


def argument_ids(path: Path) -> Iterator[str]:
    """The ids of one corpus file, streamed. Raises OSError, and ValueError for another format."""
    decoder = json.JSONDecoder()
    with path.open(encoding="utf-8-sig") as file:
        text = file.read(_PIECE)
        head = _HEAD.match(text)
        if head is None:
            raise ValueError(f'{path.name} does not begin with {{"arguments": [')
        at = head.end()
        while True:
            gap = _GAP.match(text, at)
            assert gap is not None
            at = gap.end()
            try:
                if text[at : at + 1] == "]":
                    return
                argument, at = decoder.raw_decode(text, at)
            except json.JSONDecodeError:
                rest = len(text) - at
                more = file.read(max(_PIECE, rest))
                if not more or rest > _LONGEST:
                    raise ValueError(f"{path.name} is broken or ends too early") from None
                text, at = text[at:] + more, 0
            else:
                yield str(argument["id"])


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="")


def main(arguments: list[str]) -> int:
    """Command line. Exit code 0 when written, 1 for a wrong source, 2 for a wrong call."""
    if len(arguments) not in (2, 3) or arguments[0] not in ("sample", "touche", "corpus"):
        print(__doc__, file=sys.stderr)
        return 2
    what, source = arguments[0], Path(arguments[1])
    try:
        if what == "corpus":
            zips = Path(arguments[2]) if len(arguments) == 3 else source / "downloads"
            print(f"{corpus(source, zips):,} arguments")
        else:
            dest = Path(arguments[2]) if len(arguments) == 3 else Path(__file__).resolve().parent / "datasets"
            (sample if what == "sample" else touche)(source, dest)
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        print(f"convert: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
