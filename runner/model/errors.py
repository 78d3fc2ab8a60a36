"""The one error type for people, and the register of its codes.

Every error a person can meet says what happened, why (with the place) and how to fix it, under a stable
code. ``docs/reference/errors.md`` is generated from :data:`CODES`; a test checks that every code raised is
registered here.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from schemas import SHOWN, closest, show
from schemas import Problem as Problem  # one shape for all that is wrong in files

# Exit codes of the command line (design.md 10).
FINE, FAILED, USAGE, PLATFORM, ORGANISER, INTERRUPTED = 0, 1, 2, 3, 4, 130


@dataclass(frozen=True)
class Code:
    """A registered error code: its exit code, and what it means."""

    exit: int
    text: str


_TEXTS = {
    # E1xx: how the command was called
    "E101": "The command was called in a way it does not understand.",
    "E102": "A task, team, software, dataset, submission or run of that name does not exist.",
    "E103": "The view that was asked for is not open to this audience.",
    "E104": "The command would do something that was not asked for in so many words, and nobody is there to be asked: executing settled runs again because a limit, an image or data have changed.",
    "E105": "A server asks for a token (Authorization: Bearer TOKEN), and none was sent, or one that is mistyped, replaced or revoked. The organiser gives tokens: runner team rotate TEAM.",
    "E106": "A server takes only so many tries and hand-ins in a time; it says in how many seconds there may be another.",
    # E2xx: a team's files
    "E201": "The file breaks the schema of submission.yaml; every problem is listed with its line.",
    "E202": "The build context, the Dockerfile and run files must lie inside the submission's folder, also through links.",
    "E203": "The build failed, ran out of time or broke its limits.",
    "E204": "The image named by the submission is not there. A submission without an image is refused, never registered.",
    "E205": "A file of the bundle is missing, was changed after packing or is not allowed in a bundle.",
    "E206": "The team has used its quota for this task.",
    "E207": "The submission names a scenario, input or option the task does not offer.",
    "E208": "Names of teams and softwares are letters, digits, _, - and single dots inside, with a letter or digit at both ends; those of tasks and datasets are lower-case letters, digits and hyphens; all have at most 40 characters. Words that the platform uses itself (organiser, public, all …) and names of devices (con, nul …) are no names.",
    "E209": "The software failed, or its output is not a valid run, on the public dataset.",
    "E210": "The task or dataset has not opened yet, is paused, or its deadline is over. The organiser can extend the deadline for a team.",
    "E211": "The round's date is not over, or runs that were handed in in time are not settled.",
    "E212": "Where submissions are taken in, an image is named by a tag of its own or a registry's digest, and a Dockerfile builds on its own stages, on the base images that the organiser lists in RUNNER_BASES and on a registry's digests; images are fetched from the engine's own registry, and from those that the organiser lists in RUNNER_REGISTRIES. Images of other teams and of the platform belong to them. ADD in the Dockerfile of a team takes files of the build context, and fetches nothing from another machine.",
    "E213": "The bundle says another team than the one that the organiser was given it by, or it says the organiser's.",
    "E214": "Lines of the table that was given to runner register --table are wrong, or what they name cannot be registered; every problem is listed with its line, and nothing was registered.",
    "E215": "Another team, or another software of the team, has a name that differs only in case, in which of . _ - stand between words and how many of them, or in letters and digits that look the same (O and 0; l, I and 1; rn and m).",
    "E216": "A software's image may have so many bytes as limits.image of task.yaml says; a registration that is refused costs no quota.",
    "E217": "A software's image has to be built for the operating system and the processors of the engine that runs it; a registration that is refused costs no quota.",
    "E218": "A dataset that requires another one takes a software once the same image was scored there (run files: the same software); a refusal costs no quota.",
    "E219": "A run file that is handed in over the web is checked before it is taken; every finding is listed with its line, and a refusal costs no quota. Findings by code: docs/reference/findings.md.",
    "E220": "A receipt was changed after the server signed it, is not one of that server's, or is no receipt.",
    # E3xx: platform
    "E301": "Nothing answers at the container engine's address.",
    "E302": "The engine ignores limits that the sandbox needs (for example rootless on cgroup v1, or Podman).",
    "E303": "The engine refused or broke off an operation that should work.",
    "E304": "An image of the platform (evaluator) has not been built yet.",
    "E305": "The task asks for more memory, processors or GPUs than the engine's machine has, or for a network of its gateway (services.gateway.network) that the engine does not have. runner doctor says what there is. Engines that runner setup starts have no bridge: there the network is host.",
    "E306": "The data directory (RUNNER_HOME) is missing, not writable, locked by another process or damaged, or its disk is full. Nothing of a refused command is recorded; the same command works once there is space.",
    "E307": "A hash of the archive or of the event chain does not match its content.",
    "E308": "A defect of this program. Run again with --debug and report the traceback.",
    "E309": "Nobody answers at the address of a server, or something that is no server of this kind.",
    "E311": "What a run on hidden inputs read stays in the memory of the engine's machine, where a later run could find it; the platform empties that memory in between, and here it cannot, or RUNNER_ENGINE_FOR keeps such runs away from this engine. docs/how-to/two-engines.md says what to do.",
    "E312": "Nothing answers at the server's address, the connection broke off, or the server refuses or fails. What was sent as a whole is kept there; the same command goes on.",
    "E313": "The scheduler of a cluster, its hosts, or the place where files are laid down for them does not answer or refuses.",
    # E4xx: organiser's files
    "E401": "The file breaks the schema of task.yaml; every problem is listed with its line.",
    "E402": "Files that task.yaml names are missing or unsuitable. A run whose argument index, simulated user or driver cannot use them is held at once; it costs the team nothing.",
    "E403": "Truths of a blinded dataset must lie outside the tree that participants get and outside the inputs.",
    "E404": "The evaluator container failed, its result breaks the contract, or it cannot compute a measure of the task.",
    "E405": "The file is not YAML in the restricted form that is accepted: no aliases, tags, merges or duplicate keys, at most 64 KiB.",
    "E406": "A fetched or imported file has another size or hash than its entry under sources; it is not put in its place.",
    "E407": "The address does not answer, refuses, or breaks off again and again; or the disk has no room. What has arrived is kept, and the same command goes on with it.",
    "E408": "The environment variable that services.gateway.key names is not set where runner evaluate was started, and there is no kept reply to what was asked; or the endpoint refuses the key. The run or the evaluation is held at once; it costs the team nothing.",
    "E409": "The calls, tokens or cost that services.gateway allows the task, over all its runs and evaluations, were not enough. The run or the evaluation is held at once; replies that came are kept and cost nothing again.",
    "E410": "The runs that a dataset is made from are not settled, or the file that it takes is not among their output.",
    "E411": "Inputs of a blinded dataset must lie outside the tree that participants clone, and no text of hidden files in what they are handed out. runner task hide moves them; tasks with demo: true are exempt.",
}
# A team's file that cannot be used is a wrong use of the command; these say that something was done and failed.
_FAILED = ("E203", "E206", "E209", "E210", "E211", "E218", "E219", "E220")
_EXITS = {"E1": USAGE, "E2": USAGE, "E3": PLATFORM, "E4": ORGANISER}
CODES: dict[str, Code] = {
    code: Code(FAILED if code in _FAILED else _EXITS[code[:2]], text) for code, text in _TEXTS.items()
}


class RunnerError(Exception):
    """An error to be shown to a person: what, why, fix, a stable code, and any number of problems.

    ``what`` is one line; ``why`` gives the reason and the place; ``fix`` is what the reader does next.
    """

    def __init__(
        self, code: str, what: str, *, why: str = "", fix: str = "", problems: Sequence[Problem] = ()
    ) -> None:
        super().__init__(what)
        self.code = code
        self.what = what
        self.why = why
        self.fix = fix
        self.problems = tuple(problems)

    @property
    def exit_code(self) -> int:
        """The exit code of the command line for this error."""
        return CODES[self.code].exit

    def lines(self) -> list[str]:
        """Every problem in a line, without its place in a file: for whoever has not written that."""
        return [one.what + (f" ({one.fix})" if one.fix else "") for one in self.problems]


def no_such(
    kind: str,
    name: object,
    known: Iterable[str] = (),
    *,
    of: str = "",
    why: str = "",
    fix: str = "",
    limit: int = SHOWN,
    code: str = "E102",
) -> RunnerError:
    """The error for a thing of that ``kind`` which is not there, or which ``of`` does not have.

    Args:
        kind: what it is called, such as ``dataset``.
        name: the name that was given; shown up to ``limit`` characters.
        known: the names that there are.
        of: what it was looked for in.
        why: the reason; by default the known names, where ``of`` has them.
        fix: what to do when none of the known names is near; otherwise the nearest is proposed.
        limit: characters of the name that are shown.
        code: the error's code.
    """
    names = list(known)
    what = f"{of} has no {kind}" if of else f"there is no {kind}"
    why = why or (f"It has {show(', '.join(names), 300)}." if of and names else "")
    return RunnerError(
        code, f"{what} {show(name, limit)}", why=why, fix=closest(str(name), names).strip() or fix
    )


class PlatformError(RunnerError):
    """Our side failed (engine, disk, sidecar): never the participant's fault, never a verdict on them."""

    def __init__(self, what: str, *, why: str = "", fix: str = "", code: str = "E303") -> None:
        super().__init__(code, what, why=why, fix=fix)


_FULL, _NOT_YOURS = (errno.ENOSPC, errno.EDQUOT), (errno.EACCES, errno.EPERM)
_TOO_MANY = (errno.EMFILE, errno.ENFILE)
_OF_DISKS = (*_FULL, *_NOT_YOURS, *_TOO_MANY, errno.EROFS, errno.EIO)


def is_disk_error(error: BaseException) -> bool:
    """True if the system refused a file or folder for a reason outside this program, such as a full disk."""
    return isinstance(error, OSError) and error.errno in _OF_DISKS


def disk_words(
    error: OSError, place: object = "the data directory", *, setting: str = "RUNNER_HOME"
) -> tuple[str, str]:
    """Why the system refused a file or folder, and what helps.

    Args:
        error: what it said.
        place: where it was, for an ``error`` that does not name it.
        setting: the variable that names another folder; "" where there is none.
    """
    where = error.filename or place
    if error.errno in _FULL:
        why = f"The disk of {where} is full."
        fix = "free space on that disk and run the command again"
        return why, fix + ("; runner gc removes what no task needs any more" if setting else "")
    if error.errno == errno.EROFS:
        fix = "mount it so that it can be written"
        if setting:
            fix = f"set {setting} to a folder on a disk that can be written, or mount this one so"
        return f"{where} is on a file system that can only be read.", fix
    if error.errno == errno.EIO:
        fix = "see the kernel's messages (dmesg), and have that disk checked"
        return f"The disk of {where} cannot be read or written (input/output error).", fix
    if error.errno in _TOO_MANY:
        return f"Too many files are open to open {where}.", "raise the limit of open files (ulimit -n)"
    if error.errno in _NOT_YOURS:
        fix = "have its owner give it to you (chown)" + (
            f", or set {setting} to a folder of yours" if setting else ""
        )
        return f"This user may not write or read {where}.", fix
    return f"{where}: {error.strerror or error}.", "check the space and the permissions of that folder"


def disk_error(what: str, error: OSError, place: object = "the data directory") -> PlatformError:
    """The error (E306) for a file or folder that the system refused: ``what`` could not be done, and what helps.

    ``place`` is where it was, for an ``error`` that does not name it.
    """
    why, fix = disk_words(error, place)
    return PlatformError(what, why=why, fix=fix, code="E306")


def kind_and_place(error: BaseException) -> str:
    """Of which kind an exception is, and where it was raised: what it says besides may have hidden data in it."""
    import traceback  # which takes longer to import than all that stands here

    at = traceback.extract_tb(error.__traceback__)
    place = f" in {at[-1].filename.rpartition('/')[2]}, line {at[-1].lineno}" if at else ""
    return f"{type(error).__name__}{place}"
