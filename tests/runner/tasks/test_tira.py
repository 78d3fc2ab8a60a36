"""TIRA's protocol: commands and environment."""

from __future__ import annotations

import subprocess

import pytest

from runner.tasks import tira

ENV = tira.container_env("dev")


def test_the_image_s_own_command_stays_its_own() -> None:
    assert tira.container_command(None, ENV) is None


def test_text_is_run_by_the_shell_with_placeholders_filled_in() -> None:
    assert tira.container_command("run --in $inputDataset --out ${outputDir}/run.txt | tee x", ENV) == (
        "sh", "-c", "run --in /tira-data/input --out /tira-data/output/run.txt | tee x",
    )  # fmt: skip


def test_a_list_is_run_directly() -> None:
    command = tira.container_command(["/run", "$inputDataset", "a b", "$HOME"], ENV)
    assert command == ("/run", "/tira-data/input", "a b", "$HOME")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$inputDatasets", "$inputDatasets"), ("${inputDataset}s", "/tira-data/inputs"), ("$inputDataset/x", "/tira-data/input/x"),
        ("$inputRun", "$inputRun"), ("$outputDir2", "$outputDir2"), ("$$outputDir", "$/tira-data/output"), ("$x ${y}", "$x ${y}"),
        ("$outputDir-$inputDataset", "/tira-data/output-/tira-data/input"), ("", ""),
    ],
)  # fmt: skip
def test_only_whole_placeholders_are_replaced(text: str, expected: str) -> None:
    assert tira.fill(text, ENV) == expected


def test_environment() -> None:
    assert ENV == {
        "inputDataset": "/tira-data/input", "outputDir": "/tira-data/output",
        "TIRA_INPUT_DATASET": "/tira-data/input", "TIRA_OUTPUT_DIR": "/tira-data/output",
        "TIRA_DATASET_ID": "dev", "HF_HUB_OFFLINE": "1",
    }  # fmt: skip
    env = tira.container_env("dev", ["first"])
    assert tira.fill("$inputRun", env) == env["inputRun"] == "/tira-data/input-run"


def test_several_input_runs_are_numbered() -> None:
    assert tira.input_run_paths(["a"]) == {"a": "/tira-data/input-run"}
    assert tira.input_run_paths(["a", "b"]) == {"a": "/tira-data/input-run/1", "b": "/tira-data/input-run/2"}


def test_globs_and_pipes_work_in_a_shell(tmp_path) -> None:  # type: ignore[no-untyped-def]
    for name in "ab":
        (tmp_path / f"{name}.txt").write_text("x\n")
    command = tira.container_command("cat $inputDataset/*.txt | wc -l", {"inputDataset": str(tmp_path)})
    assert command is not None
    assert subprocess.run(command, capture_output=True, timeout=20, check=True).stdout.split() == [b"2"]
