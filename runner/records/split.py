"""Topics of a dataset in two parts: by the ``public`` one scores are shown until they are published, by the ``private`` one after.

Which topic is in which part follows from a random key of the task that only the event log holds, from dataset and topic. It
is the same for every measure, stays when topics are added or judged again, and a larger share only adds public topics.
"""

from __future__ import annotations

import hmac
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from math import fsum, sqrt
from statistics import fmean
from typing import Literal

import schemas
from runner.model.run import MeasureValue

Part = Literal["all", "public", "private"]
PARTS: tuple[Part, ...] = ("all", "public", "private")
KEY_BYTES = 32
_NORMAL = 1.959963984540054  # 97.5 % of the normal distribution lie below


@dataclass(frozen=True)
class Split:
    """Over which topics means are taken. ``shares``: what part of their topics is public, by dataset; ``parts``: which part is
    looked at, all topics where nothing is said; ``key``: the task's, in hexadecimal digits."""

    key: str = ""
    shares: Mapping[str, float] = field(default_factory=dict)
    parts: Mapping[str, Part] = field(default_factory=dict)

    def part(self, dataset: str) -> Part:
        """The part of a dataset's topics that is looked at."""
        return self.parts.get(dataset, "all")

    @property
    def partial(self) -> frozenset[str]:
        """The datasets of which only a part is looked at."""
        return frozenset(name for name, part in self.parts.items() if part != "all")

    def takes(self, dataset: str, topic: str) -> bool:
        """Whether a topic is in the part that is looked at."""
        part = self.part(dataset)
        return part == "all" or (part == "public") == is_public(
            self.key, dataset, topic, self.shares[dataset]
        )

    def topics(self, dataset: str, scores: Mapping[str, float]) -> dict[str, float]:
        """Those scores by topic that belong to the part."""
        return {topic: value for topic, value in scores.items() if self.takes(dataset, topic)}

    def mean(
        self,
        dataset: str,
        whole: MeasureValue,
        scores: Mapping[str, float],
        unanswered: Collection[str] = (),
    ) -> MeasureValue | None:
        """The value over the part, from the ``whole`` one and all scores by topic, of which some are known to be ``unanswered``.

        Its interval is mean ± 1.96 s/sqrt(n), where the whole one has any. How many of its topics were answered is known where
        the unanswered ones are all that the whole says there are (evaluations of before name none).
        None when the part has no topic, or the whole is not the mean over topics, so that no part of it can be told.
        """
        if self.part(dataset) == "all":
            return whole
        values = list(self.topics(dataset, scores).values())
        if not values or abs(fmean(scores.values()) - whole.value) > 1e-9 * max(1.0, abs(whole.value)):
            return None
        middle, count = fmean(values), len(values)
        known = whole.covered is not None and len(scores) - len(unanswered) == whole.covered
        missing = sum(self.takes(dataset, topic) for topic in unanswered)
        covered = count - missing if known else None
        if whole.low is None or count < 2:
            return MeasureValue(middle, count, covered, measure=whole.measure)
        error = sqrt(fsum((value - middle) ** 2 for value in values) / (count - 1) / count)
        half = _NORMAL * error
        return MeasureValue(middle, count, covered, middle - half, middle + half, whole.measure)


WHOLE = Split()


def is_public(key: str, dataset: str, topic: str, share: float) -> bool:
    """Whether a topic is a public one: the first 64 bits of HMAC-SHA-256(key, [dataset, topic]) lie in the share of them."""
    digest = hmac.digest(bytes.fromhex(key), schemas.canonical(["topic", dataset, topic]), "sha256")
    return int.from_bytes(digest[:8]) < share * 2**64
