"""What the offline judge looks at in texts: words and how rare they are, numbers, denials, directions, sentences."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from math import log
from typing import NamedTuple

from evaluator.argue.judges.embedding import ranks

_TOKEN = re.compile(r"[a-z]+|\d+(?:[,.]\d+)*|\.\d+")
_END = re.compile(r"(?<=[.!?])\s+(?=[\"'(]?[A-Za-z0-9])|\n\s*\n")
_COMMA = re.compile(r"(?<=\d),(?=\d{3}\b)")
_BROKEN = re.compile(r"(?<![\d.])(\d)\. (\d\d)(?!\d)")  # "2. 01" for 2.01, as scanned texts have it
_NUMBER_SIGN = re.compile(r"\bno\. ?(?=\d)", re.IGNORECASE)


def _list(text: str) -> list[str]:
    return text.split()


STOP = frozenset(
    _list("""a about above after again against all also although am among an and any are as at be became because been before
    being below between both but by can could did do does doing done down during each either else ever every few for from
    further get gets had has have having he her here hers him his how however i if in into is it its itself just least less
    made make makes many may me might more most much must my near neither next nor now of off often on once one only onto or other
    our out over own per quite rather same several shall she should since so some still such than that the their theirs
    them then there therefore these they this those though through thus to too toward towards under until up upon us use
    used using very via was we well were what when where whereas whether which while who whom whose why will with within
    would yet you your""")
)
NEGATIONS = frozenset(
    _list("""no not never none neither nor without cannot nothing nobody nowhere hardly scarcely barely fail fails failed lack
    lacks lacked absent absence unable untrue wrong false incorrect n""")
)
DOUBT = frozenset(
    _list("""unclear unknown uncertain debated disputed disagree undecided unresolved unsettled perhaps possibly
    controversial inconclusive""")
)
_UNITS = {
    w: str(n)
    for n, w in enumerate(_list("zero one two three four five six seven eight nine ten eleven twelve"))
}
_ORDINALS = {
    w: str(n)
    for n, w in enumerate(_list("first second third fourth fifth sixth seventh eighth ninth tenth"), 1)
}
_WORDS = {**_UNITS, **_ORDINALS, "half": "2", "twice": "2", "double": "2", "doubled": "2", "quarter": "4",
          "square": "2", "squared": "2", "cube": "3", "cubed": "3", "both": "2"}  # fmt: skip

# Pairs of which one in the place of the other turns a statement round; all their forms, by their stems.
_OPPOSITES = (
    ("increase", "decrease"), ("increase", "reduce"), ("increase", "reduction"), ("rise", "fall"), ("raise", "lower"),
    ("grow", "shrink"), ("high", "low"), ("higher", "lower"), ("highest", "lowest"), ("greater", "smaller"), ("large", "small"),
    ("larger", "smaller"), ("largest", "smallest"), ("greatest", "smallest"), ("more", "less"), ("most", "least"),
    ("more", "fewer"), ("maximum", "minimum"), ("strong", "weak"), ("stronger", "weaker"), ("strongest", "weakest"),
    ("fast", "slow"), ("faster", "slower"), ("fastest", "slowest"), ("promote", "delay"), ("promote", "prevent"),
    ("advance", "delay"), ("accelerate", "decelerate"), ("acceleration", "deceleration"), ("stabilize", "destabilize"),
    ("stabilise", "destabilise"), ("stable", "unstable"), ("stability", "instability"), ("before", "after"),
    ("above", "below"), ("upstream", "downstream"), ("forward", "rearward"), ("forward", "aft"), ("ahead", "behind"),
    ("front", "rear"), ("inner", "outer"), ("inside", "outside"), ("upper", "lower"), ("favorable", "unfavorable"),
    ("favourable", "unfavourable"), ("favorable", "adverse"), ("favourable", "adverse"), ("same", "different"),
    ("always", "never"), ("sharp", "blunt"), ("cool", "heat"), ("cold", "hot"), ("cooler", "hotter"), ("thick", "thin"),
    ("thicker", "thinner"), ("long", "short"), ("longer", "shorter"), ("wide", "narrow"), ("wider", "narrower"),
    ("laminar", "turbulent"), ("subsonic", "supersonic"), ("overestimate", "underestimate"), ("exceed", "below"),
    ("better", "worse"), ("best", "worst"), ("good", "poor"), ("agree", "disagree"), ("early", "late"), ("earlier", "later"),
    ("earlier", "delay"), ("linear", "nonlinear"), ("insensitive", "sensitive"), ("steady", "unsteady"), ("gain", "loss"),
    ("attached", "separated"), ("open", "close"), ("begin", "end"), ("start", "stop"), ("win", "lose"),
    ("support", "oppose"), ("accept", "reject"), ("rich", "poor"), ("young", "old"), ("younger", "older"),
    ("majority", "minority"), ("legal", "illegal"), ("possible", "impossible"), ("necessary", "unnecessary"),
)  # fmt: skip
# Words that say which way something goes.
UPWARDS = frozenset(
    _list("""more most greater greatest higher highest larger largest increase increases increased increasing rise rises rose
    rising raise raised raises exceed exceeds exceeded exceeding above maximum strong stronger strongest better best longer
    longest faster fastest thicker wider improve improves improved many much gain gains grow grows grew growing enhance
    enhanced promote promotes promoted easily easier overestimate overestimates overestimated considerable considerably
    significant significantly appreciable appreciably""")
)
DOWNWARDS = frozenset(
    _list("""less least fewer fewest smaller smallest lower lowest decrease decreases decreased decreasing reduce reduces reduced
    reducing reduction fall falls fell falling drop drops dropped below minimum weak weaker weakest worse worst shorter
    shortest slower slowest thinner narrower few hardly never little delay delays delayed scarcely loss losses shrink shrinks
    insignificant negligible underestimate underestimates underestimated slight slightly""")
)


class Wording(NamedTuple):
    """A text as the judge sees it: content stems with their weights, every stem, numbers, and how often it denies."""

    weights: dict[str, float]
    stems: frozenset[str]
    numbers: frozenset[str]
    denials: int
    doubts: int


@lru_cache(maxsize=20_000)
def wording(text: str) -> Wording:
    """What is looked at in ``text``."""
    tokens = _tokens(text.lower().replace("n't", " not"))
    weights: dict[str, float] = {}
    stems: set[str] = set()
    numbers: set[str] = set()
    for token in tokens:
        if token[0].isdigit() or token[0] == ".":
            numbers.add(_number(token))
            continue
        if token in _WORDS:
            numbers.add(_WORDS[token])
        root = stem(token)
        stems.add(token)
        stems.add(root)
        if token not in STOP and token not in NEGATIONS and len(token) > 1:
            weights[root] = max(weights.get(root, 0.0), rarity(token))
    denials = sum(t in NEGATIONS for t in tokens)
    return Wording(weights, frozenset(stems), frozenset(numbers), denials, sum(t in DOUBT for t in tokens))


def _tokens(text: str) -> list[str]:
    found: list[str] = _TOKEN.findall(_BROKEN.sub(r"\1.\2", _COMMA.sub("", _NUMBER_SIGN.sub("", text))))
    return found


def _number(token: str) -> str:
    try:
        return f"{float(token.replace(',', '.') if token.count(',') == 1 and '.' not in token else token.replace(',', '')):g}"
    except ValueError:
        return token


def digits(text: str) -> frozenset[str]:
    """The numbers that are written in figures."""
    found = _tokens(text.lower())
    return frozenset(_number(t) for t in found if t[0].isdigit() or t[0] == ".")


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """A word without its commonest English endings: crude, but the same for all its forms."""
    if len(word) <= 3:
        return word
    for ending, put in (
        ("ically", "ic"), ("ations", "at"), ("ation", "at"), ("ments", ""), ("ment", ""), ("ness", ""), ("ities", ""),
        ("ity", ""), ("ingly", ""), ("ings", ""), ("ing", ""), ("edly", ""), ("ied", "y"), ("ies", "y"), ("ed", ""),
        ("ers", "er"), ("able", "ab"), ("ably", "ab"), ("ible", "ib"), ("ive", "iv"), ("ions", ""), ("ion", ""), ("ally", "al"),
        ("ly", ""), ("es", ""), ("s", ""), ("e", ""),
    ):  # fmt: skip
        if (
            word.endswith(ending)
            and len(word) - len(ending) >= 3
            and not (ending == "s" and word.endswith("ss"))
        ):
            root = word[: len(word) - len(ending)] + put
            if len(root) > 3 and root[-1] == root[-2] and root[-1] not in "aeiouls":
                root = root[:-1]
            return root
    return word


@lru_cache(maxsize=50_000)
def rarity(word: str) -> float:
    """From about 0.2 for the commonest words to 1 for those that the vocabulary does not have."""
    place = ranks().get(word)
    return 1.0 if place is None else 0.2 + 0.8 * log(max(place - 995, 2)) / log(30_000)


def _opposites() -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for one, other in _OPPOSITES:
        a, b = stem(one), stem(other)
        found[a] = found.get(a, frozenset()) | {b}
        found[b] = found.get(b, frozenset()) | {a}
    return found


OPPOSITES = _opposites()


def direction(text: str) -> int:
    """1 if a text only says that something is or gets more, -1 for less, 0 for both or neither."""
    tokens = frozenset(_TOKEN.findall(text.lower()))
    return (not tokens.isdisjoint(UPWARDS)) - (not tokens.isdisjoint(DOWNWARDS))


def sentences(text: str) -> list[str]:
    """The sentences of a text, roughly; at most 2,000."""
    return [s.strip() for s in _END.split(text)[:2000] if s.strip()]


def covered(what: Wording, by: Iterable[str]) -> float:
    """The share of the content of a text that stems hold, rare words counting more; 1 for a text without content."""
    there = frozenset(by)
    whole = sum(what.weights.values())
    return sum(w for s, w in what.weights.items() if s in there) / whole if whole else 1.0


def turned(one: Wording, other: Wording) -> int:
    """How many words of the one have only their opposite in the other."""
    return sum(
        1
        for s in one.stems
        if s in OPPOSITES and s not in other.stems and not OPPOSITES[s].isdisjoint(other.stems)
    )
