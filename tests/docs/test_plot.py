"""The plot of the evaluator's ratios is that of the table beside it."""

from __future__ import annotations

import pytest

from benchmarks.plot import PLOT, TABLE, Ratio, drawn, ratios


def test_the_plot_in_docs_shows_the_table_in_docs() -> None:
    rows = ratios(TABLE.read_text())
    assert len(rows) > 10 and {"6,980 x 1,000", "1,000 x 1,000", "50 x 1,000"} <= {row.what for row in rows}
    assert PLOT.read_text() == drawn(rows) + "\n", "python -m benchmarks.plot"
    assert PLOT.name in TABLE.read_text()


def test_the_first_table_with_ratios_is_read() -> None:
    head = "| what | CPU s | CPU / its | wall / its | goal |\n|---|---|---|---|---|\n"
    text = f"| a |\n|---|\n| b |\n\n{head}| one | 1 | 0.5 | 0.25 | CPU 0.3, 150 MiB: **missed** |\n\n{head}| two | 1 | 2 | 3 | 4 |\n"
    assert ratios(text) == [Ratio("one", 0.5, 0.25, 0.3, 0.3)] and ratios("") == []
    assert ratios(text.replace("150 MiB", "wall 0.1"))[0] == Ratio("one", 0.5, 0.25, 0.3, 0.1)
    with pytest.raises(ValueError):
        ratios(f"{head}| one | 1 | 0.5 | 0.25 | none |\n")
