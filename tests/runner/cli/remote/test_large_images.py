"""The measurement of large images in small: all its parts, without a word on time."""

from __future__ import annotations

import pytest

from benchmarks.sending import main


@pytest.mark.slow
def test_an_image_is_sent_put_together_and_not_sent_again(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--mib", "64"]) == 0
    rows = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines()[2:]]
    assert [row[0].split()[0] for row in rows] == ["send", "front", "put", "send"]
    assert [float(row[1]) for row in rows] == pytest.approx([64, 64, 64, 0], abs=0.1)
