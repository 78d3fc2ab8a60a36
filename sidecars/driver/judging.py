"""Sub-task 2: finished debates are shown to a judge that is a server, and its scores are written as GenIRSim does."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from sidecars.driver.answers import Judgment, Share, encode, milliseconds, read_judgment
from sidecars.driver.config import Config, Transcript
from sidecars.driver.debate import outcome
from sidecars.driver.output import Part
from sidecars.driver.software import Software
from sidecars.peer import Failure

CRITERIA = ("Quantity", "Quality", "Relation", "Manner")


async def judge(transcript: Transcript, config: Config, software: Software, room: int) -> Part:
    """All judgments of one debate: each turn for the four criteria, then the debate as a whole.

    A failed judgment is recorded and left out of its turn; a debate that has no turns (``{}``) stays ``{}``.
    """
    if transcript.simulation is None:
        return Part(transcript.number, "{}", [])
    judging = _Judging(transcript, config, software, room)
    started = time.perf_counter()
    turns = [await judging.all(index) for index in range(len(transcript.simulation["userTurns"]))]
    overall = await judging.all(None)
    whole = milliseconds(started)
    line = (
        f'{{"configuration":{encode(configuration(config))},"simulation":{judging.simulation},'
        f'"userTurnsEvaluations":[{",".join(turns)}],"overallEvaluations":{overall},'
        f'"millisecondsEvaluation":{whole}}}'
    )
    return Part(transcript.number, line, judging.records)


def configuration(config: Config) -> dict[str, Any]:
    """The block that says who judged, with GenIRSim's names."""
    return {
        "evaluators": {
            name: {"class": "ApiBasedEvaluator", "url": f"{config.address}/{name.lower()}"}
            for name in CRITERIA
        }
    }


class _Judging:
    """One debate before the judge. Every request holds the whole debate, also its later turns."""

    def __init__(self, transcript: Transcript, config: Config, software: Software, room: int) -> None:
        self.number, self.software, self.share = transcript.number, software, Share(room)
        self.simulation = encode(transcript.simulation)
        self.records: list[dict[str, Any]] = []

    async def all(self, index: int | None) -> str:
        """The four criteria of one turn (from 0), or of the whole debate, as one encoded object."""
        started = time.perf_counter()
        kept: dict[str, Any] = {}
        for criterion in CRITERIA:
            if (data := await self._one(criterion, index)) is not None:
                kept[criterion] = data
        kept["milliseconds"] = milliseconds(started)
        return encode(kept)

    async def _one(self, criterion: str, index: int | None) -> Mapping[str, Any] | None:
        turn = "" if index is None else f',"userTurnIndex":{index}'
        body = f'{{"simulation":{self.simulation}{turn}}}'.encode()
        started = time.perf_counter()
        judgment: Judgment | None = None
        failure: Failure | None = None
        try:
            reply = await self.software.ask(f"/{criterion.lower()}", body)
            found = read_judgment(reply)
            self.share.take(len(encode(found.data).encode()), found, "judgments")
            judgment = found
        except Failure as caught:
            failure = caught
        spent = milliseconds(started)
        self.records.append(
            {
                "debate": self.number,
                "turn": None if index is None else index + 1,
                "criterion": criterion,
                **outcome(failure),
                "score": judgment.score if judgment else None,
                "system_ms": round(spent, 3),
            }
        )
        if judgment is None or judgment.score is None:
            return None
        return {**judgment.data, "milliseconds": spent}
