"""What can be said about the turns of a debate without a judge.

Every share is over all turns that the task has: a turn without an answer counts 0 and is never left out. With T turns
in all and, for turn t, w_t words of the answer and the list A_t of its arguments:

``answered``
    share of turns with an answer.
``within-word-limit``
    share of turns with an answer of at most ``word_limit`` words (what is rendered as a blank separates them:
    :mod:`schemas.words`).
``cites``
    share of turns whose answer comes with at least one argument.
``provenance``
    mean over all T turns of (arguments in order) / |A_t|; 0 for a turn without arguments, because nothing in it can be
    traced. In order is an argument that is in the index, has the index's text (white space and Unicode composition
    aside), was returned by the index to this very run, is not listed before in the same answer, and is among the first
    ``max_arguments`` (50) of it.
``provenance@cited``
    share of the answers with arguments all of whose arguments are in order: turns without arguments do not count. 0 if
    there are none. No number of good arguments makes up for one that was made up.
``groundedness``
    mean over all T turns of |C(answer) ∩ C(arguments)| / |C(answer)|, where C is the set of content words: words of
    letters and digits without the most frequent English function words and modal verbs, in lower case, without a
    plural ending (the S stemmer of Harman, How effective is suffixing?, 1991). The arguments' words are taken from the
    index, so that texts made up by the system ground nothing; where there is no index, from the run. Only the first
    ``max_arguments`` (50) of an answer's arguments count: whoever lists the whole index does not ground everything. 0
    for a turn without arguments or without content words.
``unrepeated``
    share of turns whose answer does not repeat an earlier one of its debate: the Jaccard index of their content words
    is below 0.8 for all of them.
``words``, ``latency`` (or ``latency@mean``, ``latency@median``, ``latency@p95``; milliseconds), ``readability``
    (Flesch-Kincaid grade)
    over the answered turns: mean, median, or the smallest value that at least 95 % do not exceed. They do not exist
    without an answered turn. Read them beside ``answered``.
``readability-official``
    mean over all T turns of 1 / grade, 0 where there is no answer or no such value, as the shared task's own
    evaluator computes it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from math import ceil, fsum
from statistics import median
from typing import NamedTuple

from evaluator.measures.readability import grade, official
from schemas.words import count_words

REPEATED = 0.8
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_ENGLISH = """
a about above after again against all also am an and any are aren't as at be because been before being below
between both but by can can't cannot could couldn't did didn't do does doesn't doing don't down during each either
else even every few for from further had hadn't has hasn't have haven't having he he's her here hers herself him
himself his how however i i'd i'll i'm i've if in into is isn't it it's its itself just let's many may me might more
most much must my myself neither no nor not of off on once one only or other ought our ours ourselves out over own
same shall she she's should shouldn't so some such than that that's the their theirs them themselves then there
there's therefore these they they'd they'll they're they've this those though through thus to too under until up
upon us very was wasn't we we'd we'll we're we've were weren't what when where whether which while who whom whose
why will with within without won't would wouldn't yes yet you you'd you'll you're you've your yours yourself
yourselves
"""
_FUNCTION_WORDS = frozenset(_ENGLISH.split())


class Cited(NamedTuple):
    """How the arguments of one answer stand: ``ok`` of ``all`` are in order."""

    all: int
    ok: int


class Facts(NamedTuple):
    """What is known about one turn. All values of a turn without an answer are 0, None or empty.

    ``latency`` is in milliseconds; ``cited`` is None if there is no index to compare with; ``content`` are the
    answer's content words, ``ground`` those of its arguments.
    """

    answered: bool
    words: int = 0
    latency: float | None = None
    arguments: int = 0
    cited: Cited | None = None
    grounded: float = 0.0
    grade: float | None = None
    official: float = 0.0
    repeated: bool = False


FAILED = Facts(False, cited=Cited(0, 0))


def same_text(first: str, second: str) -> bool:
    """Whether two texts are the same, white space and Unicode composition aside."""
    return first == second or _normal(first) == _normal(second)


def _normal(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split())


def content_words(text: str) -> frozenset[str]:
    """The content words of a text (see the module's first lines)."""
    words = _WORD.findall(unicodedata.normalize("NFKC", text).casefold().replace("’", "'"))
    return frozenset(_singular(w) for w in words if w not in _FUNCTION_WORDS)


def _singular(word: str) -> str:
    """Harman's S stemmer, behind the removal of a possessive ending."""
    word = word.removesuffix("'s").removesuffix("'")
    if len(word) < 4:
        return word
    if word.endswith("ies"):
        return word if word.endswith(("eies", "aies")) else word[:-3] + "y"
    if word.endswith("es"):
        return word if word.endswith(("aes", "ees", "oes")) else word[:-1]
    if word.endswith("s"):
        return word if word.endswith(("us", "ss")) else word[:-1]
    return word


def groundedness(answer: Collection[str], arguments: Collection[str]) -> float:
    """The share of an answer's content words that are among those of its arguments; 0 if it has none."""
    return sum(w in arguments for w in answer) / len(answer) if answer else 0.0


def jaccard(first: Collection[str], second: Collection[str]) -> float:
    """|A ∩ B| / |A ∪ B|; 1 for two empty sets."""
    both = sum(w in second for w in first)
    either = len(first) + len(second) - both
    return both / either if either else 1.0


def facts(
    answer: str,
    arguments: int,
    cited: Cited | None,
    texts: Iterable[str],
    latency: float | None,
    earlier: Sequence[Collection[str]],
) -> Facts:
    """The facts about an answered turn.

    ``arguments`` is how many it lists, ``texts`` are theirs; ``earlier`` are the content words of the debate's
    earlier answers.
    """
    content = content_words(answer)
    ground = frozenset(w for text in texts for w in content_words(text)) if arguments else frozenset()
    return Facts(
        True,
        count_words(answer),
        latency,
        arguments,
        cited,
        groundedness(content, ground),
        grade(answer),
        official(answer),
        any(jaccard(content, one) >= REPEATED for one in earlier),
    )


class Measure(NamedTuple):
    """A measure of turns: ``of`` gives a turn's value, or None where the turn does not count; ``join`` sums them up.

    ``share``: all turns count, so that means over debates of equal length are means over turns.
    """

    text: str
    of: Callable[[Facts], float | None]
    join: Callable[[Sequence[float]], float]
    share: bool = True

    def values(self, turns: Iterable[Facts]) -> list[float]:
        """The values of the turns that count."""
        return [v for t in turns if (v := self.of(t)) is not None]

    def joined(self, turns: Iterable[Facts]) -> float | None:
        """The value over the turns that count; None if none does."""
        values = self.values(turns)
        return self.join(values) if values else None


def mean(values: Sequence[float]) -> float:
    """The mean of at least one value."""
    return fsum(values) / len(values)


def p95(values: Sequence[float]) -> float:
    """The smallest value that at least 95 % of the values do not exceed."""
    return sorted(values)[ceil(0.95 * len(values)) - 1]


def measures(limit: int) -> Mapping[str, Measure]:
    """Every automatic measure by its name; ``limit`` is the number of words that an answer may have.

    ``provenance@cited`` is not among them: it is no mean of turns (see :func:`provenance_cited`).
    """

    def provenance(turn: Facts) -> float | None:
        if turn.cited is None:
            return None
        return turn.cited.ok / turn.cited.all if turn.cited.all else 0.0

    def latency(turn: Facts) -> float | None:
        return turn.latency if turn.answered else None

    made = [
        Measure("answered", lambda t: float(t.answered), mean),
        Measure("within-word-limit", lambda t: float(t.answered and t.words <= limit), mean),
        Measure("cites", lambda t: float(t.arguments > 0), mean),
        Measure("provenance", provenance, mean),
        Measure("groundedness", lambda t: t.grounded, mean),
        Measure("unrepeated", lambda t: float(t.answered and not t.repeated), mean),
        Measure("words", lambda t: float(t.words) if t.answered else None, mean, share=False),
        Measure("latency", latency, mean, share=False),
        Measure("latency@mean", latency, mean, share=False),
        Measure("latency@median", latency, median, share=False),
        Measure("latency@p95", latency, p95, share=False),
        Measure("readability", lambda t: t.grade, mean, share=False),
        Measure("readability-official", lambda t: t.official, mean),
    ]
    return {m.text: m for m in made}


NAMES = (*measures(60), "provenance@cited")


def provenance_cited(turns: Iterable[Facts]) -> float | None:
    """The share of answers with arguments all of which are in order; None if there is no index or no argument."""
    sound = citing = 0
    for turn in turns:
        if turn.cited is None:
            return None
        citing += turn.cited.all > 0
        sound += turn.cited.all > 0 and turn.cited.ok == turn.cited.all
    return sound / citing if citing else None
