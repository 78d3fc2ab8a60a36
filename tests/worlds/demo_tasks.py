"""The four shared tasks of the demo in a project of its own, and baselines of them in an image that exists already."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.worlds.baselines import baseline_folder
from tests.worlds.mini import Project

ROOT = Path(__file__).resolve().parents[2]
# By task (a shared task can have two): the dataset that counts, and its baselines by name, each with the modules that it is made of and
# what else stands in its submission.yaml.
SHORT = {
    "touche-2021-task1": ("sample", {"argsme-dirichlet": ("argsme", "argsme_dirichlet", {})}),
    "perspective-2024": (
        "test-1",
        {"perspective-bm25": ("perspective", "perspective_bm25", {"scenarios": ["baseline", "explicit"]})},
    ),
    "rad-2025-debate": ("test", {"rad-elastic-python": ("debating", "elastic", {"workflow": "interactive"})}),
    "rad-2025-judging": (
        "test",
        {
            "rad-judge-1": ("judging", "judge", {"workflow": "interactive"}),
            "rad-judge-heuristic-batch": ("judging", "judge", {"workflow": "batch"}),
        },
    ),
    "report-generation": ("test", {"report-extractive": ("reports", "report_extractive", {})}),
}
DATASETS = {task: dataset for task, (dataset, _) in SHORT.items()}


def write_demo(project: Project) -> None:
    """Write the tasks, and the demo's teams with softwares of theirs."""
    for task, (_, softwares) in SHORT.items():
        left_out = shutil.ignore_patterns("*.npy", "__pycache__")
        shutil.copytree(ROOT / "tasks" / task, project.root / "tasks" / task, ignore=left_out)
        for name, (module, main, keys) in softwares.items():
            folder = baseline_folder(name)
            project.of_the_tree(folder, module, main, team="baselines", task=task, tag=name, **keys)
    broken = (ROOT / "submissions" / "broken" / "rad-html" / "main.py").read_text("utf-8")
    project.software(
        "rad-html", broken, team="broken", task="rad-2025-debate", tag="broken", workflow="interactive"
    )
