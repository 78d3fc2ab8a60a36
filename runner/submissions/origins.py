"""Where the image of a stranger's submission may come from: never from another team, never from us.

The engine of whoever takes submissions holds every team's software and the platform's own images, and answers to any
name, digest or beginning of an identity. So on that machine a reference is resolved first, and then refused when what
it leads to is somebody else's; a Dockerfile may take something only from its own stages, from a base image that the
organiser lists (``RUNNER_BASES``), or from a registry by digest. A registry is the engine's own, or one that the organiser lists
(``RUNNER_REGISTRIES``): a name is also an address that the engine calls, from inside the organiser's network, and where an
unknown registry sends it on to.

A stranger is every team but the organiser's ``baselines``, whenever a submission is handed in on this machine, and in
every other command as soon as the store here holds another team's submission. On a team's own machine nobody is one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import schemas
from runner.engines.base import Engine
from runner.engines.dockerfile_syntax import UnclearError, read_dockerfile
from runner.model.config import REGISTRIES, Config
from runner.model.container import ImageRef
from runner.model.errors import Problem, RunnerError
from runner.model.limits import in_units
from runner.model.names import BASELINES
from runner.model.task import Task
from runner.submissions.dockerfile import Source, sources, triggers, unproven_additions
from runner.submissions.hints import of_pull

KEPT = "proctor-submissions"  # where the images of registered submissions are kept: KEPT/<digest of the team>:<digest of the id>
OURS = "proctor"
OWN_LABEL = "proctor.image"  # on every image of the platform
_DIGEST = re.compile(r"[a-z0-9][a-z0-9._:/-]{0,300}@sha256:[0-9a-f]{64}")
_HUB = "docker.io"
_FROM_ELSEWHERE = (
    "build it, by a Dockerfile of one line: FROM and that name; then the image itself is sent. Or push it to one of these, "
    "or ask the organiser to list that registry in RUNNER_REGISTRIES"
)
_PINNED = "name it with its digest (repository@sha256:…), or ask the organiser to list it in RUNNER_BASES"


def kept_as(task: str, team: str, submission_id: str) -> str:
    """The name under which the image of a registered submission is kept in the engine: an image's name takes no capitals."""
    return f"{_repository_of(team)}:{schemas.digest([task, submission_id])[:32]}"


def _repository_of(team: str) -> str:
    """Where the images of a team's registered submissions are kept."""
    return f"{KEPT}/{schemas.digest(team)[:32]}"


def refused(what: str, why: str, fix: str = "", problems: tuple[Problem, ...] = ()) -> RunnerError:
    """The error E212, with the usual fix unless another is given."""
    fix = fix or "build it from files of your own, or name an image of a registry by its digest"
    return RunnerError("E212", what, why=why, fix=fix, problems=problems)


def check_size(size: int, task: Task, name: str) -> None:
    """Raise E216 when an image of ``size`` bytes, of the software ``name``, is larger than the task allows."""
    if size > task.image_limit:
        raise RunnerError(
            "E216",
            f"the image of {name} is too large",
            why=f"It has {in_units(size)}; {task.id} takes images of up to {in_units(task.image_limit)}.",
            fix="leave out what the software does not need (docker history shows what is large): caches of pip and apt, "
            "build tools, data, GPU libraries for a machine without one",
        )


def check_platform(image: ImageRef, engine: Engine, name: str) -> None:
    """Raise E217 when the image of the software ``name`` was built for other machines than that of ``engine``.

    Versions of one family of processors (``arm64/v8``) are not told apart, and 32-bit x86 programs run on amd64.
    """
    ours, theirs = _family(engine.info().platform), _family(image.platform)
    if theirs == ours or (theirs, ours) == ("linux/386", "linux/amd64"):
        return
    raise RunnerError(
        "E217",
        f"the image of {name} does not run here",
        why=f"It was built for {schemas.show(theirs, 60)}, and this engine has {ours}.",
        fix=f"build it with docker build --platform {ours}, on base images for {ours}, and pack it again",
    )


def _family(platform: str) -> str:
    """Operating system and architecture without its version."""
    return "/".join(platform.split("/")[:2])


@dataclass(frozen=True)
class Origins:
    """What the images of one team may come from, on this machine.

    ``strict`` is false where the team is no stranger. ``owners`` maps identities of images to the teams that
    registered them here, ``bases`` are the images that anybody may use, ``registries`` the hosts from which images are fetched.
    """

    team: str
    engine: Engine
    bases: tuple[str, ...] = ()
    owners: Mapping[str, frozenset[str]] | None = None
    strict: bool = True
    registries: tuple[str, ...] = REGISTRIES

    def image(self, reference: str) -> ImageRef:
        """The image that a submission names. Raises E204 when there is none, E212 when it may not be named."""
        if _repository(reference).startswith(f"{KEPT}/"):
            # Kept under the ids that leaderboards show: by such a name anybody could hand in somebody else's software.
            raise refused(
                "that image is a submission that was handed in",
                "Images of registered submissions are the organiser's and their team's.",
            )
        if self.strict and not self._listed(reference) and (why := self._not_asked(reference)):
            raise refused("the image of the submission may not be fetched", why, _FROM_ELSEWHERE)
        found = self.engine.resolve(reference)
        if self.strict and not self._listed(reference):
            why = self._not_theirs(reference, found)
            if why:
                raise refused("the image of the submission may not be used", why)
        return found

    def dockerfile(
        self, path: Path, arguments: Mapping[str, str], shown: str, *, network: bool = False
    ) -> None:
        """Check every image and address that a Dockerfile uses, before anything is built.

        Args:
            path: the Dockerfile.
            arguments: its build arguments.
            shown: its name in messages.
            network: the submission asks for a network during the build.

        Raises:
            RunnerError: E212 with all problems at once.
        """
        try:
            text = read_dockerfile(path)
        except UnclearError as error:
            problem = Problem(f"{shown}:{error.line}", str(error), "end every line with LF or CRLF")
            why = "Builders differ in where such a line ends."
            raise refused("the Dockerfile is not clear", why, "correct what is listed", (problem,)) from error
        fetches = tuple(self._fetches(text, shown, network))
        if fetches:
            raise refused(
                "the Dockerfile may fetch files from another machine",
                "ADD of an address or a Git repository uses the network of the engine's machine, also in a build without "
                "a network.",
                "correct what is listed",
                fetches,
            )
        if not self.strict:
            return
        problems = [
            Problem(f"{shown}:{source.line}", what, fix)
            for source in sources(text, arguments)
            for what, fix in self._problems(source)
        ]
        if problems:
            raise refused(
                "the Dockerfile takes something from images that it may not use",
                "On a machine that holds other teams' images a build may use its own stages, the base images "
                f"{', '.join(self.bases)}, and images of a registry by digest.",
                "correct what is listed",
                tuple(dict.fromkeys(problems)),
            )

    def _fetches(self, text: str, shown: str, network: bool) -> Iterator[Problem]:
        """Yield the additions that may fetch something; the organiser's builds with a network may."""
        if self.team == BASELINES and network:
            return
        fix = "put the file into the build context and name it as ./path"
        if self.team == BASELINES:
            fix += ", or write `network: true` below `build:`"
        for line, source in unproven_additions(text):
            yield Problem(
                f"{shown}:{line}",
                f"ADD {schemas.show(source, 120)} is not certainly a file of the context",
                fix,
            )

    def registry(self, digest: str, identity: str) -> ImageRef:
        """The image of a bundle that names one of a registry. Raises E204, E205 for another identity, E212.

        What the engine says of the registry is not told: it names what lies in the organiser's network.
        """
        if not _DIGEST.fullmatch(digest) or _repository(digest).split("/")[0] in (KEPT, OURS):
            raise refused("the image of the bundle may not be used", "It is not a name of a registry.")
        if self.strict and not self._listed(digest) and (why := self._not_asked(digest)):
            raise refused("the image of the bundle may not be fetched", why, _FROM_ELSEWHERE)
        try:
            found = resolve_expected(self.engine, digest, identity)
        except RunnerError as error:
            if error.code != "E204":
                raise
            why, fix = of_pull(error.why)
            raise RunnerError("E204", error.what, why=why, fix=fix) from error
        why = "" if self._listed(digest) else self._not_theirs(digest, found)
        if why:
            raise refused(
                "the image of the bundle may not be used",
                why,
                "pack it with the image in it: runner pack … --to FOLDER",
            )
        return found

    def _problems(self, source: Source) -> Iterator[tuple[str, str]]:
        """What is wrong with one image of a Dockerfile, and how to correct it; nothing for a good one."""
        used = f"{source.how} {schemas.show(source.name, 120)}"
        if source.trouble:
            yield f"{used}: {source.trouble}", "write a plain name"
            return
        listed = self._listed(source.name)
        if not listed and not _DIGEST.fullmatch(source.name):
            yield f"{used} is neither an earlier stage nor a listed base image nor a digest", _PINNED
            return
        if not listed and (wrong := self._by_its_name(source.name)):
            yield f"{used}{wrong[0]}", wrong[1]
            return
        try:
            found = self.engine.resolve(source.name)
        except RunnerError as error:
            if error.code != "E204":
                raise
            if not listed:  # a listed one is the organiser's choice, and the build pulls it
                yield f"{used}: {error.what}", "check its name; the engine must reach its registry"
            return
        if not listed and (why := self._not_theirs(source.name, found)):
            yield f"{used}: {why}", _PINNED
        elif source.how.endswith("FROM"):
            yield from self._trigger_problems(source, found)

    def _trigger_problems(self, source: Source, image: ImageRef) -> Iterator[tuple[str, str]]:
        """Yield what is wrong with the triggers (ONBUILD) of a base image, and how to correct it."""
        for inherited in triggers(image.onbuild, source.line, source.stages):
            yield from self._problems(inherited)
        for trigger in image.onbuild:
            for _, added in unproven_additions(trigger):
                what = f"{source.how} {schemas.show(source.name, 120)}: its ONBUILD has ADD {schemas.show(added, 120)}"
                yield what, "choose another base image"

    def _listed(self, reference: str) -> bool:
        return reference in self.bases or _plain(reference) in {_plain(base) for base in self.bases}

    def _by_its_name(self, reference: str) -> tuple[str, str] | None:
        """What is wrong with an image that a Dockerfile names, and how to correct it, where its name tells; None for a good one."""
        if _repository(reference).split("/")[0] in (KEPT, OURS):
            return " is an image of the platform", _PINNED
        why = self._not_asked(reference)
        fix = "name one of a registry that is, or ask the organiser (RUNNER_REGISTRIES)"
        return (f": {why}", fix) if why else None

    def _not_asked(self, reference: str) -> str:
        """Why an image is not fetched from the registry that its name says; empty where it may be."""
        host = _registry(reference)
        if host in {name.lower() for name in self.registries}:
            return ""
        return f"Images are fetched from {', '.join(self.registries)}, and {schemas.show(host, 120)} is not among them."

    def _not_theirs(self, reference: str, image: ImageRef) -> str:
        """Why an image that the engine has is not the team's to use; empty when it is."""
        repositories = {_repository(name) for name in image.names}
        if _plain(reference) not in {_plain(name) for name in image.names}:
            return "An identity, or the beginning of one, is no name: whoever knows it could use anybody's image."
        teams = (self.owners or {}).get(image.id, frozenset())
        kept = {name for name in repositories if name.startswith(f"{KEPT}/")} - {_repository_of(self.team)}
        if teams - {self.team} or kept:
            return "It is an image of another team's submission."
        if OWN_LABEL in image.labels or any(name.startswith(f"{OURS}/") for name in repositories):
            return "It is an image of the platform."
        return ""


def resolve_expected(engine: Engine, digest: str, identity: str) -> ImageRef:
    """The image that a registry has under a digest. Raises E204, and E205 when it is not the one of that identity."""
    found = engine.resolve(digest)
    if found.id != identity:
        raise RunnerError("E205", "the registry holds another image than the bundle says", fix="pack again")
    return found


def origins(config: Config, engine: Engine, team: str) -> Origins:
    """What the images of a team's submissions may come from on this machine."""
    owners = _owners(config)
    others = any(teams - {team, BASELINES} for teams in owners.values())
    strict = team != BASELINES and (config.handing_in or others)
    return Origins(team, engine, config.bases, owners, strict, config.registries)


def _owners(config: Config) -> dict[str, frozenset[str]]:
    """Which teams registered an image, by its identity; nothing where nothing was ever registered."""
    from runner.records.store.database import is_there

    if not (config.events.exists() or is_there(config)):
        return {}
    from runner.records.store.connect import open_store
    from runner.records.store.queries import submissions

    found: dict[str, frozenset[str]] = {}
    with open_store(config) as store:
        for entry in submissions(store):
            if entry.image is not None:
                found[entry.image] = found.get(entry.image, frozenset()) | {entry.team}
    return found


def _plain(reference: str) -> str:
    """A reference in the one form that all spellings of it have: no default registry, a tag where there is no digest."""
    name, _, digest = reference.strip().partition("@")
    head, slash, last = name.rpartition("/")
    base, _, tag = last.partition(":")
    repository = f"{head}{slash}{base}"
    for prefix in ("index.docker.io/", "docker.io/", "library/"):
        repository = repository.removeprefix(prefix)
    return f"{repository}@{digest}" if digest else f"{repository}:{tag or 'latest'}"


def _repository(reference: str) -> str:
    """The repository of a reference, without default registry, tag and digest."""
    name, at, _ = _plain(reference).partition("@")
    return name if at else name.rpartition(":")[0]


def _registry(reference: str) -> str:
    """The host, with its port, that an engine asks for a reference. Some engines take a first part with capitals for a host, too."""
    first, slash, _ = reference.strip().partition("/")
    named = slash and (set(".:") & {*first} or first.lower() in ("localhost", "") or first != first.lower())
    host = first.lower() if named else _HUB
    return _HUB if host == f"index.{_HUB}" else host
