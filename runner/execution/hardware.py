"""The machine on which software is executed, and the energy that it uses meanwhile, where that can be read."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from runner.engines.base import EngineInfo

POWERCAP = Path("/sys/class/powercap")
_PACKAGE = re.compile(r"intel-rapl:[0-9]+")  # whole packages; their parts have another number behind


@cache
def runner_version() -> str:
    """The version of this runner: reading the metadata of its package takes longer than all else that a record says."""
    from importlib.metadata import version

    return version("proctor-ir")


def machine_of(info: EngineInfo) -> dict[str, Any]:
    """The machine of the engine, as run.json has it.

    ``cpu`` (model) and ``kernel`` are None where the engine is on another machine than this process: then nobody can tell.
    """
    here = _is_here(info)
    return {
        "architecture": info.platform.partition("/")[2],
        "cores": info.cpus,
        "memory": info.memory,
        "cpu": _model() if here else None,
        "kernel": platform.release() if here else None,
    }


@dataclass(frozen=True)
class Energy:
    """What the counters of all packages of processors showed at a moment, in microjoules, by their folders; with their ranges."""

    counters: Mapping[Path, tuple[int, int]]

    @classmethod
    def now(cls, info: EngineInfo, folder: Path = POWERCAP) -> Energy:
        """The counters of this machine (RAPL); none where it has none, they may not be read, or the engine is elsewhere."""
        found = {}
        if _is_here(info) and folder.is_dir():
            for place in sorted(folder.iterdir()):
                if _PACKAGE.fullmatch(place.name):
                    try:
                        found[place] = _number(place / "energy_uj"), _number(place / "max_energy_range_uj")
                    except (OSError, ValueError):
                        return cls({})
        return cls(found)

    def used(self) -> float | None:
        """Joules that the whole machine's processors have used since; None where that is not known.

        A counter starts again at 0 behind its range; that it did so twice is not seen.
        """
        if not self.counters:
            return None
        total = 0
        try:
            for place, (before, most) in self.counters.items():
                after = _number(place / "energy_uj")
                total += after - before if after >= before else after - before + most
        except (OSError, ValueError):
            return None
        return total / 1e6


def _is_here(info: EngineInfo) -> bool:
    """Whether the engine sees the processors and the memory of this machine."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return False
    return info.cpus == os.cpu_count() and abs(info.memory - memory) < memory // 100


def _model() -> str | None:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines()
    except OSError:
        return None
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, None)


def _number(path: Path) -> int:
    return int(path.read_text("ascii"))
