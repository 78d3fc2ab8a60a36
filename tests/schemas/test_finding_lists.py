"""Lists of findings begin with errors, and have one line for all warnings of a code."""

from schemas.findings import group_warnings, list_findings


def row(code: str, severity: str, line: int) -> dict[str, object]:
    """Return a finding of a file."""
    return {"file": "run", "line": line, "code": code, "severity": severity, "message": "m", "fix": "f"}


ROWS = [row("F018", "warning", line) for line in range(1, 31)]
ROWS += [row("F014", "error", 40), row("F012", "defect", 35), row("F025", "warning", 50)]
COUNTS = {"F018": 30, "F014": 1, "F012": 1, "F025": 1}


def test_errors_come_first_and_warnings_are_one_line_a_code() -> None:
    lines = list_findings(ROWS, COUNTS, most=50)
    assert [line.split(" ")[1] for line in lines] == ["F014", "F012", "F018", "F025"]
    assert "(30 times)" in lines[2]
    assert [(one["code"], one.get("times")) for one in group_warnings(ROWS, COUNTS)] == [
        ("F014", None),
        ("F012", None),
        ("F018", 30),
        ("F025", 1),
    ]


def test_no_code_hides_another_and_the_rest_is_counted() -> None:
    rows = [row("F010", "error", line) for line in range(1, 101)] + [row("F005", "error", 200)]
    lines = list_findings(rows, {"F010": 400, "F005": 1, "F025": 7}, most=20)
    assert sum(" F010 " in line for line in lines[:-1]) == 10
    assert any(" F005 " in line for line in lines)
    assert lines[-1] == "... and 390 more F010, 7 more F025"
