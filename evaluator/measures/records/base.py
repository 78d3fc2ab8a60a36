"""What a measure over records is: a name with parameters, the columns that it reads, and a value over all records.

A measure is written as a string, its identity: ``F1(label, average=macro)``. What stands first is the field that it
reads; ``truth=`` names the field of the truths where that is another one. A field is a key of the record, or a JSON
pointer (``/answer/start``) to something deeper.

To add one: a subclass of :class:`PerRecord` (the value is a mean, median or sum of values of single records) or of
:class:`Overall` (it is not), in a module of this folder, named in that module's ``MEASURES``; the module in
:data:`evaluator.measures.records.named.MODULES`; the unit and meaning under ``x-measures`` in
``schemas/kinds/records.schema.json``. Libraries are imported inside functions, so that nothing is loaded that the task's
measures do not need. The docstring of the class names the source of the formula.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Literal, NamedTuple

from evaluator.errors import EvaluatorError
from evaluator.findings import plain


class _Missing:
    """The one value of :data:`MISSING`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "MISSING"

    def __bool__(self) -> bool:
        return False


# In an output's column: no such record, no such field, null, or nothing that can be used.
MISSING: Final = _Missing()


@dataclass(frozen=True)
class Form:
    """What a column may hold. ``read`` makes of a JSON value what measures see, MISSING of one that will not do.

    ``says`` is what is wanted, for messages. ``plain``: whether ``read`` gives each of many values back as it is.
    """

    name: str
    says: str
    read: Callable[[Any], Any]
    plain: Callable[[list[Any]], bool] = lambda _: False

    def column(self, values: list[Any]) -> list[Any] | None:
        """``read`` of each value, MISSING for None; None where another one is MISSING."""
        if self.plain(values):
            return values
        found = [MISSING if value is None else self.read(value) for value in values]
        missing = sum(one is MISSING for one in found)
        return found if missing == sum(one is None for one in values) else None


def _number(value: Any) -> Any:
    fine = (type(value) is float or type(value) is int) and -1e300 < value < 1e300
    return value if fine else MISSING


def _label(value: Any) -> Any:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    return (
        str(int(value)) if isinstance(value, float) and value.is_integer() and abs(value) < 1e15 else MISSING
    )


def _numbers(values: list[Any]) -> bool:
    return {*map(type, values)} <= {int, float} and all(-1e300 < value < 1e300 for value in values)


def _words(values: list[Any]) -> bool:
    return {*map(type, values)} == {str}


LARGEST = 1e149  # that the value of a record counts, on either side of zero: no evaluator may give values beyond 1e150, nor their mean


def bounded(value: float) -> float:
    """The value of a record, which counts as :data:`LARGEST` at most: an absurd number of a participant is no failure of the evaluator."""
    return max(-LARGEST, min(float(value), LARGEST))


NUMBER = Form("number", "a number", _number, _numbers)
# Columns hold text: 1 is "1".
LABEL = Form("label", "a label: text, a whole number, true or false", _label, _words)
MAX_TEXT = 100_000  # characters: n-grams of longer ones would fill the memory
TEXT = Form(
    "text",
    f"text of at most {MAX_TEXT:,} characters",
    lambda value: value if isinstance(value, str) and len(value) <= MAX_TEXT else MISSING,
    lambda values: _words(values) and max(map(len, values)) <= MAX_TEXT,
)
ANY = Form("any", "a value", lambda value: MISSING if value is None else value)


class Column(NamedTuple):
    """A field that a measure reads, of the ``output`` or of the ``truth``, and the form of its values."""

    side: Literal["output", "truth"]
    field: str
    form: Form


@dataclass(frozen=True)
class Columns:
    """Records of the truths joined with those of an output: one row for each record of the truths, in their order.

    ``keys`` are the records' ids; ``output`` and ``truth`` the columns by field. Values of the truths always have the
    form that the measure asked for; those of the output, too, or they are :data:`MISSING`.
    """

    keys: Sequence[str]
    output: Mapping[str, Sequence[Any]]
    truth: Mapping[str, Sequence[Any]]
    _pairs: dict[tuple[str, str], Counter[tuple[Any, Any]]] = field(
        default_factory=dict, repr=False, compare=False
    )

    def __len__(self) -> int:
        return len(self.keys)

    def pairs(self, said: str, right: str) -> Counter[tuple[Any, Any]]:
        """How often each value of a field of the output goes with each of a field of the truths; counted once."""
        if (said, right) not in self._pairs:
            self._pairs[said, right] = Counter(zip(self.output[said], self.truth[right], strict=True))
        return self._pairs[said, right]

    def take(self, rows: Sequence[int]) -> Columns:
        """These rows, in this order; a row may come several times (resampling)."""
        keys = self.keys
        return Columns(
            [keys[i] for i in rows],
            {field: [column[i] for i in rows] for field, column in self.output.items()},
            {field: [column[i] for i in rows] for field, column in self.truth.items()},
        )


@dataclass(frozen=True)
class Parameter:
    """A parameter of a measure: its ``default``, which values it ``accepts``, and what it ``says`` of these in words."""

    says: str
    accepts: Callable[[Any], bool]
    default: Any = None
    required: bool = False


def one_of(*words: str) -> Parameter:
    """A parameter that is one of these words, the first by default."""
    return Parameter(", ".join(words[:-1]) + f" or {words[-1]}", lambda value: value in words, words[0])


FIELD = Parameter(
    "a field of the record, such as label or /answer/text",
    lambda value: isinstance(value, str) and value != "",
    required=True,
)
TRUTH = Parameter("a field of the truths", lambda value: isinstance(value, str) and value != "")


class Measure(ABC):
    """A measure with its parameters. Subclasses set the class variables, and say how values come about.

    - ``name``: what stands before the bracket.
    - ``output_form``, ``truth_form``: what its columns hold.
    - ``parameters``: those beside ``field`` and ``truth``.
    - ``compares``: whether there is a field of the truths beside that of the output.
    - ``direction``: which end is good; ``bounds``: the lowest and highest value that there can be.

    Attributes of an instance: ``text``, the canonical string; ``field`` and ``truth``, the fields; ``given``, the other
    parameters with their defaults.
    """

    name: ClassVar[str]
    output_form: ClassVar[Form] = ANY
    truth_form: ClassVar[Form] = ANY
    parameters: ClassVar[Mapping[str, Parameter]] = {}
    compares: ClassVar[bool] = True
    direction: Literal["higher", "lower"] = "higher"
    bounds: tuple[float, float] = (0.0, 1.0)

    def __init__(self, text: str, given: Mapping[str, Any]) -> None:
        """Keep parameters that were checked (:func:`evaluator.measures.records.named.measure` does that)."""
        self.text = text
        self.field: str = given["field"]
        self.truth: str = given.get("truth") or self.field
        self.given = {name: given.get(name, one.default) for name, one in self.takes().items()}
        self.check()

    @classmethod
    def takes(cls) -> Mapping[str, Parameter]:
        """All parameters, with ``field`` and ``truth``."""
        return {"field": FIELD, **({"truth": TRUTH} if cls.compares else {}), **cls.parameters}

    def check(self) -> None:  # noqa: B027 (most measures have no such rule)
        """Raise :class:`EvaluatorError` for parameters that do not go together."""

    def columns(self) -> Sequence[Column]:
        """What is read: by default one field of each side."""
        there = Column("output", self.field, self.output_form)
        return (there, Column("truth", self.truth, self.truth_form)) if self.compares else (there,)

    @property
    def same(self) -> bool:
        """Whether an output that repeats the truths is the best there is: made for ``runner task check --run``."""
        return self.output_form is self.truth_form

    def perfect(self, truth: Any) -> Any:
        """The output that is right where the truths say ``truth``, if :attr:`same`."""
        return truth

    def pair(self, of: Columns) -> tuple[Sequence[Any], Sequence[Any]]:
        """The columns of ``field`` and ``truth``: what the output says (or MISSING), and what is right."""
        return of.output[self.field], of.truth[self.truth]

    def scores(self, of: Columns) -> tuple[Sequence[float] | None, float]:
        """:meth:`values` and :meth:`value`, each computed once."""
        return self.values(of), self.value(of)

    @abstractmethod
    def value(self, of: Columns) -> float:
        """The value over all records; a record that is missing counts as the worst that there is.

        Args:
            of: At least one row.

        Returns:
            A finite number within ``bounds``.

        Raises:
            EvaluatorError: The truths allow no such measure (they have one class only, say).
        """

    def values(self, of: Columns) -> Sequence[float] | None:
        """The value of each record where ``value`` is made of these, for paired tests and intervals; else None."""
        return None

    def parts(self, of: Columns) -> Mapping[str, float]:
        """What the value is made of where that is not records, such as F1 by class; shown beside it, never ranked."""
        return {}

    def resampled(self, of: Columns) -> Callable[[Sequence[int]], float]:
        """What gives the value over some rows, which may come several times; it raises as :meth:`value` does."""
        return lambda rows: self.value(of.take(rows))

    def signature(self, of: Columns) -> str:
        """What makes the value comparable with those of other programs, such as sacrebleu's signature; or nothing."""
        return ""


RULES: Mapping[str, Callable[[Sequence[float]], float]] = {
    "mean": lambda values: math.fsum(values) / len(values),
    "median": lambda values: _median(values),
    "sum": math.fsum,
    "root": lambda values: math.sqrt(math.fsum(values) / len(values)),
}


def _median(values: Sequence[float]) -> float:
    ordered, half = sorted(values), len(values) // 2
    return ordered[half] if len(values) % 2 else (ordered[half - 1] + ordered[half]) / 2


class PerRecord(Measure):
    """A measure with a value for each record, and a ``rule`` (of :data:`RULES`) that makes one of them.

    ``macro=FIELD`` of the truths: the rule is applied to the records of each value of that field, and the mean is taken of
    what comes out, so that each counts the same. Of several ``rules`` the task may name one; the first is the default.
    """

    rules: ClassVar[tuple[str, ...]] = ("mean", "median")

    def __init__(self, text: str, given: Mapping[str, Any]) -> None:
        """As every measure. Raises :class:`EvaluatorError` for a ``macro`` that would read the truth's field in another form."""
        super().__init__(text, given)
        if self.compares and self.given["macro"] == self.truth and self.truth_form is not LABEL:
            raise refuse(self, "macro is the field that it reads", "name another field of the truths")

    @classmethod
    def takes(cls) -> Mapping[str, Parameter]:
        """Those of the measure, ``rule`` and ``macro``."""
        rule = {"rule": one_of(*cls.rules)} if len(cls.rules) > 1 else {}
        return {**super().takes(), **rule, "macro": TRUTH}

    @property
    def rule(self) -> str:
        """The key of :data:`RULES`."""
        return str(self.given.get("rule") or self.rules[0])

    @property
    def mean(self) -> bool:
        """Whether the value is the mean over all records, and nothing else."""
        return self.rule == "mean" and not self.given["macro"]

    @property
    def same(self) -> bool:
        """As for every measure; a median may be as good for worse outputs."""
        return super().same and self.rule != "median"

    def columns(self) -> Sequence[Column]:
        """Those of every measure, and what ``macro`` names."""
        groups = self.given["macro"]
        return (*super().columns(), *([Column("truth", groups, LABEL)] if groups else []))

    def scores(self, of: Columns) -> tuple[Sequence[float], float]:
        """See :meth:`Measure.scores`."""
        values = self.values(of)
        rows = range(len(of))
        return values, self._over(values, of)(rows) if self.given["macro"] else RULES[self.rule](values)

    def value(self, of: Columns) -> float:
        """The rule over :meth:`values`."""
        return self.scores(of)[1]

    def resampled(self, of: Columns) -> Callable[[Sequence[int]], float]:
        """See :meth:`Measure.resampled`: values of records are computed once."""
        return self._over(self.values(of), of)

    def _over(self, values: Sequence[float], of: Columns) -> Callable[[Sequence[int]], float]:
        rule, macro = RULES[self.rule], self.given["macro"]
        if not macro:
            return lambda rows: rule([values[row] for row in rows])
        of_row = of.truth[macro]

        def grouped(rows: Sequence[int]) -> float:
            groups: dict[str, list[float]] = {}
            for row in rows:
                groups.setdefault(of_row[row], []).append(values[row])
            return math.fsum(map(rule, groups.values())) / len(groups)

        return grouped

    @abstractmethod
    def values(self, of: Columns) -> Sequence[float]:
        """The value of each record, in order; of a missing one the worst that there is."""


class Overall(Measure):
    """A measure that has a value over many records only, such as F1 or a correlation."""


def refuse(measure: Measure, why: str, fix: str = "") -> EvaluatorError:
    """The error for truths or parameters with which ``measure`` has no value; ``why`` holds nothing of the truths."""
    return EvaluatorError(f"{plain(measure.text, 200)} has no value", why, fix)


def classes(*columns: Iterable[Any]) -> list[str]:
    """The different labels of columns, without MISSING, sorted."""
    return sorted({label for column in columns for label in column if label is not MISSING})
