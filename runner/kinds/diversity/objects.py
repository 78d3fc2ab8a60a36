"""Arguments and queries of a release of Perspective Argument Retrieval 2024, in the official form or that of its README."""

from __future__ import annotations

import re
from typing import Any

from runner.kinds.release import Wrong
from schemas import show

_CORPUS = ("argument_id", "argument", "topic", "stance", "demographic_profile")
_ISSUES = "important_political_issues"
_PROFILE = (
    *("gender", "age", "residence", "civil_status", "denomination", "education", "political_spectrum"),
    _ISSUES,
)
_ISSUE_LABELS = (
    "Offene Aussenpolitik", "Liberale Wirtschaftspolitik", "Restriktive Finanzpolitik", "Law & Order",
    "Restriktive Migrationspolitik", "Ausgebauter Umweltschutz", "Ausgebauter Sozialstaat", "Liberale Gesellschaft",
)  # fmt: skip
_ASKED = {"age": "age_bin", _ISSUES: "important_political_issue"}  # other spellings of query properties
_ASKABLE = frozenset(("age_bin", "important_political_issue", *_PROFILE)) - {"age", _ISSUES}
_STANCES = {"FAVOR": "FAVOR", "PRO": "FAVOR", "AGAINST": "AGAINST", "CON": "AGAINST"}
_DIGITS = re.compile(r"[0-9]{1,18}")


def read_argument(data: Any) -> dict[str, Any]:
    """An argument in the official form. Raises :class:`Wrong`."""
    data = dict(data)
    if "argument" not in data and "text" in data:
        data["argument"] = data.pop("text")
    if "target" in data:  # the README's; the real files have the policy field, topic, instead
        target = data.pop("target")
        data.setdefault("topic", target)
    _complete(data, _CORPUS)
    extra = next((key for key in data if key not in _CORPUS), None)
    if extra is not None:
        raise Wrong(
            f'the field "{show(extra)}" is not part of the format',
            "leave it out: it would count as a property",
        )
    argument: dict[str, Any] = {"argument_id": _id(data["argument_id"], "argument_id")}
    for key in ("argument", "topic", "stance"):
        if not isinstance(data[key], str):
            raise Wrong(f"{key} is not text")
        argument[key] = data[key]
    stance = _STANCES.get(data["stance"])
    if stance is None:
        raise Wrong(f'the stance is "{show(data["stance"])}"', "write FAVOR or AGAINST")
    argument["stance"] = stance
    argument["demographic_profile"] = _profile(data["demographic_profile"])
    return argument


def _profile(profile: Any) -> dict[str, Any]:
    if not isinstance(profile, dict):
        raise Wrong("demographic_profile is not an object")
    for key, value in profile.items():
        if key not in _PROFILE:
            raise Wrong(f'demographic_profile has the unknown key "{show(key)}"')
        if key != _ISSUES and value is not None and not isinstance(value, str):
            raise Wrong(f"{key} is not text")
    issues = profile.get(_ISSUES)
    if not isinstance(issues, list) or not all(isinstance(i, str) for i in issues):
        raise Wrong(f"{_ISSUES} is missing or not a list of texts", "write [] for none")
    return profile


def read_query(data: Any, *, perspective: bool) -> dict[str, Any]:
    """A query in the official form. Raises :class:`Wrong`."""
    data = dict(data)
    if "demographic_property" not in data and "demographic_properties" in data:
        data["demographic_property"] = data.pop("demographic_properties")
    if data.get("relevant_candidates") is None:
        raise Wrong("relevant_candidates is missing", "without relevance the split cannot be evaluated")
    own = ("demographic_property",) if perspective else ()
    _complete(data, ("query_id", "text", *own, "relevant_candidates"))
    query: dict[str, Any] = {"query_id": _id(data["query_id"], "query_id")}
    if not isinstance(data["text"], str):
        raise Wrong("text is not text")
    query["text"] = data["text"]
    if perspective:
        wanted = data["demographic_property"]
        if not isinstance(wanted, dict) or len(wanted) != 1:
            raise Wrong("demographic_property is not an object with one key")
        ((key, value),) = wanted.items()
        key = _ASKED.get(key, key)
        if key not in _ASKABLE:
            raise Wrong(f'demographic_property has the unknown key "{show(key)}"')
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        if not isinstance(value, str):
            raise Wrong(f"{key} is not text")
        query["demographic_property"] = {key: value}
    relevant = data["relevant_candidates"]
    if not isinstance(relevant, list):
        raise Wrong("relevant_candidates is not a list")
    query["relevant_candidates"] = [_id(a, "a relevant candidate") for a in relevant]
    return query


def _complete(data: dict[str, Any], keys: tuple[str, ...]) -> None:
    for key in keys:
        if key not in data:
            raise Wrong(f"{key} is missing")


def _id(value: Any, what: str) -> int:
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        return int(value)
    if isinstance(value, float) and value.is_integer() and 0 <= value < 2**53:
        return int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**63:
        raise Wrong(f"{what} is not an integer")
    return value


def same_values(corpus: list[dict[str, Any]]) -> list[str]:
    """A line that names the diversity properties of which all arguments have one value, or none: they will not count."""
    keys = [key for key in ("stance", *_PROFILE) if key not in ("denomination", _ISSUES)]
    profiles = [{**a["demographic_profile"], "stance": a["stance"]} for a in corpus]
    same = [key for key in keys if len({profile.get(key, 0) for profile in profiles}) < 2]
    named = {label: sum(label in profile[_ISSUES] for profile in profiles) for label in _ISSUE_LABELS}
    same += [label for label, count in named.items() if count in (0, len(corpus))]
    why = "left out of diversity, because all arguments have the same value"
    return [f"{why}: {', '.join(same)}"] if same else []
