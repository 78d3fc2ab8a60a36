"""The pages about files that people and parts write: task.yaml, submission.yaml, the evaluator contract, the archive."""

from __future__ import annotations

import schemas
from tools.docs.tables import grid, page, table

_YAML = """\
## The YAML that is accepted

One document of at most 64 KiB in UTF-8, nested at most 16 levels. No aliases, anchors, tags, directives, merge keys, duplicate
keys, or keys that are not text. Plain scalars are those of YAML 1.2's core schema in decimal: `true`, `false`,
`null`, whole numbers and numbers. Everything else is text: `no`, `12:30`, `0o7` and `007` stay as they are
written. Every problem of a file is listed at once, as `file:line`.
"""

_IMAGES = """\
## Where images may come from

Your own machine is yours: name and build on what you like. A machine that takes submissions in (`runner submit`,
`make submit`, `runner register`; and `runner pack` and `runner try` as soon as another team's submission is registered there)
holds other teams' software, so there what you use must be yours to use. Everything else is refused with E212, all at once
and before anything is built; only the organiser's own team `baselines` is exempt.

| | allowed |
|---|---|
| `image:` | the name of an image that is no other team's and not the platform's; `repository@sha256:…`; never an id or the beginning of one |
| `FROM`, `COPY --from`, `RUN --mount=from=`, also as `ONBUILD` | an earlier stage of the same file; a base image; `repository@sha256:…`; `FROM scratch` |
| a bundle from elsewhere | carries its image (`runner pack --to FOLDER`), or names one of a registry by its digest |

- Base images are `python:3.11-slim`, `proctor/base:bookworm`, and what the organiser lists in
  [`RUNNER_BASES`](environment.md). Anybody may also name them as `image:`. A base image's own `ONBUILD` keeps the same rules.
- Images are fetched from the engine's own registry (`docker.io`), and from those that the organiser lists in
  [`RUNNER_REGISTRIES`](environment.md) (`registry.example.org`, `lab:5000`): a name is an address that the organiser's machine calls.
- Arguments in `FROM` are filled in: build arguments, defaults, `${X:-y}`, `${X:+y}`. Other forms, quoted flags, variables in
  `--from`, and a here-document with a line that begins with `FROM` or `ARG` are refused, because builders differ in them.
- A line `# syntax=` has no effect: builds use the engine's own builder.
- An image with a digest that another team has registered is theirs. One that several teams need belongs into
  `RUNNER_BASES`.
"""

_EVALUATOR = """\
An evaluator judges one run. It is a container image, in any language, that keeps this contract; a task names it
under `evaluator.image`. The platform's own evaluator keeps the same contract.

## How it is started

| | |
|---|---|
| command | the image's own entrypoint, without arguments |
| network | none |
| user | not root, and not the image's choice |
| root file system | read-only; `/tmp` is a small memory file system |
| limits | the task's `evaluator.limits` |
| `EVALUATOR_REQUEST` | path of the request: `/in/request.json` |
| `/in` | read-only: `request.json`, and `run/` with the run's files (regular files only, sizes capped) |
| `/inputs` | read-only: the dataset's inputs |
| `/truths` | read-only: the dataset's truths |
| `/services` | read-only, for a task whose services have data: a folder for each, such as `/services/search` |
| `/gateway` | read-only, for a task with `evaluator: {gateway: true}`: the socket `gateway.sock`, the one way to ask a model |
| `/out` | writable, empty: the three files below go here, and `details.jsonl` if there is one |

`request.json` names these places under `paths`; go by that, not by this table. `paths.services` and `paths.gateway` are
null where there is no such thing.

Exit code 0 means that `result.json` was written, also when it says that the run is invalid. Any other exit code,
a missing file, or a file that breaks its schema is an error of the evaluator, never of the participant: the run is
held for the organiser. All files are UTF-8; numbers are finite. Values of measures and topics, ends of intervals and values in
resamples lie between -1e150 and 1e150.

Everything in `/in/run` was written by a participant: treat it as hostile. Messages must not repeat what the truths
hold, because teams may see them. One exception: where `records` is true (workflow interactive), the files beside the main
one, `turns.jsonl` and `served.jsonl`, are the platform's own.

`runner task check` gives the evaluator a run file without a single line. An evaluator that can do its work writes `valid` or
`invalid`; one that cannot compute a measure writes `error`, and is then asked for each measure on its own. This is how the
organiser learns of it before the task opens.

## Judgments

- **Values that come later.** A measure that waits for people's labels goes into `pending`, with the reason, and not into
  `measures`. The run is valid; a leaderboard shows "–" and does not rank it by that measure.
- **Who judged.** If people or a model judged, `judge` says who, with which prompts (a hash) and how reliable that is. It
  stands on every leaderboard beside the scores.
- **Models** are asked over the gateway's socket, with OpenAI's `POST /v1/chat/completions` ([what may be
  asked](gateway.md#what-may-be-asked)). `max_tokens` is required. Do not put more into a question than is needed: what a
  participant wrote is in it, and may contain instructions.
- **The same question is asked once** for a task: replies are kept with the archive, keyed by model, messages and
  parameters. An evaluator that asks in the same words again gets the same bytes, without key and network. Set
  `temperature` to 0, and leave times and random numbers out of the questions.
- A missing key (E408) or a spent budget (E409) is the organiser's: the evaluation is held. When a question stays without
  an answer, leave its measures `pending` or end with an exit code other than 0; never guess.

## `/out/details.jsonl`

Optional: what the scores are made of, one JSON object a line (at most 1 MiB each), usually one a topic. The keys are the
evaluator's own; `runner show` knows those of the kinds that come with the platform. On a blinded dataset only the
organiser sees them.
"""

_FILES = (
    ("request", "`/in/request.json`"),
    ("result", "`/out/result.json`"),
    ("score", "`/out/scores.jsonl`, one line for each measure and topic"),
    ("finding", "`/out/findings.jsonl`, one line for each kept finding"),
)


def task() -> str:
    """The page about task.yaml, with the options of every kind."""
    root = schemas.schema("task")
    parts = [root["description"] + "\n", "## Keys\n", table(root), _YAML, _AMOUNTS]
    for kind in schemas.kinds():
        parts += _described(f"## Options of the kind `{kind}`", f"kinds/{kind}")
        for name in schemas.of_kind(kind):
            parts += _described(f"### {schemas.schema(name)['title']}", name)
    return page("task.yaml", *parts)


def _described(heading: str, name: str, where: str = "") -> list[str]:
    """The schema of that name below a heading: its description, and its fields."""
    root = schemas.schema(name)
    return [heading + "\n", root.get("description", "") + where + "\n", table(root)]


_AMOUNTS = """\
## Sizes, durations, patterns

Sizes are a number of bytes or an amount with a unit: `B`, `kB`, `MB`, `GB`, `TB` (powers of 1000), `KiB`, `MiB`, `GiB`, `TiB`
(powers of 1024). Durations are a number of seconds or an amount with `s`, `min`, `h` or `d`. In patterns `*` and
`?` stay within a folder, and `**` stands for any folders.
"""


def submission() -> str:
    """The page about submission.yaml."""
    root = schemas.schema("submission")
    return page("submission.yaml", root["description"] + "\n", "## Keys\n", table(root), _IMAGES, _YAML)


def evaluator() -> str:
    """The page about the evaluator contract."""
    parts = [part for name, where in _FILES for part in _described(f"## {where}", name)]
    return page("The evaluator contract", _EVALUATOR, *parts)


_RECORDS = (
    ("bundle", "bundle.json", "submissions/SUBMISSION/bundle/"),
    ("manifest", "manifest.json", "every sealed folder and every bundle"),
    ("lock", "lock.json", "archive/TASK/RUN/attempts/N/"),
    ("run", "run.json", "archive/TASK/RUN/attempts/N/"),
    ("evaluation", "evaluation.json", "archive/TASK/RUN/attempts/N/evaluations/K/"),
    ("event", "events.jsonl", "the data directory; one line an event"),
    ("leaderboard", "a leaderboard as JSON", "`runner leaderboard TASK --format json`"),
    ("snapshot", "a frozen round", "snapshots/TASK/ROUND.json"),
)

_ARCHIVE = """\
Everything that the runner knows lies in the data directory (`RUNNER_HOME`, default `.runner` in the project). The
**archive** and the **event log** are the truth; the database is made from them, and `runner store rebuild` makes it
again. Nothing in the archive is ever changed: a folder is written elsewhere, gets a manifest with the SHA-256 of every
file, and is then moved into place. `runner store verify` compares all
of it: every hash, every content once, events against folders, the database row by row against what the two make, and the **last known head** (number
and hash of the last event), which stands in the database, in every frozen round, and in the receipt of every registration.

```
archive/TASK/RUN/attempts/N/           one execution
    lock.json                          what was run, on what, under which limits; the same lock means the same work
    run.json                           how it ended, and what it used
    manifest.json                      SHA-256 of every file here
    output/                            the run file, fetched through a capped reader; interactive: see interactive.md
    logs/stdout.log logs/stderr.log    the last bytes of each; beside them the logs of the containers around it
                                       (whatever the manifest calls stored is not here but in .contents/)
    calls.jsonl replies.jsonl          if a gateway was there: what was asked, and what models answered
    evaluations/K/                     one evaluation; a new one never replaces an old one
        evaluation.json result.json scores.jsonl findings.jsonl logs/ manifest.json
        details.jsonl                  if the evaluator wrote it: what the scores are made of
        calls.jsonl replies.jsonl      as above, of this evaluation
archive/.contents/AB/SHA256            the bytes of run files and of other large files, each once; with .gz compressed
submissions/SUBMISSION/bundle/         what was registered; its run files are in archive/.contents/
snapshots/TASK/ROUND.json              a frozen round; its SHA-256 stands in the event log
accounts.sqlite                        who may sign in at the server; people, apart from all that is above
labels/TASK/DATASET/                   which form of an annotator shows which debate; back it up, and hand it to nobody
stages/TASK/DATASET/VERSION/           inputs that were made from other runs, with provenance.json
replies/TASK.jsonl                     all replies of models to this task, so that nothing is asked twice (derived)
views/                                 inputs as scenarios see them (derived)
events.jsonl                           who did what, append-only, each line with the hash of the one before
store.sqlite                           the database (derived)
pages.json                             of what runner work made the page of each run last, by digests (derived)
locks/ data/ engine/ bundles/          locks; packages and data of our own engine; what runner pack wrote
```

## The content store

The bytes of a run are kept once, however often they come by: handed in, registered, evaluated. `archive/.contents/` holds every file
of `output/`, every registered run file, and logs and lists (`.jsonl`) from 4 KiB, under the SHA-256 of their bytes; the
manifests say `stored` of them. A content is copied in, synced, renamed and read-only; it is compressed (gzip, so that `zcat` reads it)
where that saves a tenth or more. What is read is unpacked only as far as the size in the manifest, and compared with its digest; where a
program needs a path, it gets a copy in a folder for temporary files (`TMPDIR`), which is removed again. `runner store verify` names what is missing or damaged with
all runs and submissions that it belongs to (E307); `runner gc` removes what is a day old and belongs to nothing; `runner export` writes a run's files as
they were. Files of archives that were written before there was a content store stay where they are, and are read there.

| name | made of | example |
|---|---|---|
| submission | team and software (in lower case, `_` for dots), 8 digits of the bundle's digest | `baselines.bm25.693f3be7` |
| run | submission, dataset, and the scenario unless it is `default` | `baselines.bm25.693f3be7.test` |
| attempt | run and number | `baselines.bm25.693f3be7.test#1` |

## Events
"""


def archive() -> str:
    """The page about the archive, the event log and the files in them."""
    from runner.records.events import TYPES

    parts = [_ARCHIVE, grid("type, when", ((f"`{name}`", says) for name, says in TYPES.items()))]
    for name, title, where in _RECORDS:
        place = where if "`" in where or " " in where else f"`{where}`"
        parts += _described(f"## {title}", name, f"\n\nWhere: {place}.")
    return page("The archive and the event log", *parts)


# Files between front and work: schema, heading, and who writes it for whom.
_SERVER = (
    ("published", "published/current.json", "work, for the front"),
    ("access", "published/access.json", "work and `runner team`, for the front"),
    ("oidc", "oidc.json", "you, for work; and for the front, in a file that it is told"),
    ("inbox-request", "inbox/NUMBER-ID/request.json", "the front, for work"),
    ("inbox-run-file", "data of a request for a run file", "the front, for work"),
    ("inbox-software", "data of a request for a software", "the front, for work"),
    ("parcel", "payload of a request for a software, its first line", "runner submit, for work"),
    ("inbox-withdraw", "data of a request to withdraw", "the front, for work"),
    ("inbox-choose", "data of a request to choose", "the front, for work"),
    ("inbox-token", "data of a request for a token", "the front, for work"),
    ("inbox-identity", "data of signing in at a provider", "the front, for work"),
    ("inbox-register", "data of a registration", "the front, for work"),
    ("inbox-terms", "data of a team's accepting terms", "the front, for work"),
    ("inbox-propose", "data of a proposal", "the front, for work"),
    ("inbox-review", "data of a review", "the front, for work"),
    ("inbox-rerun", "data of a request to execute a run again", "the front, for work"),
    ("inbox-team", "data of a request about a team's account", "the front, for work"),
    ("inbox-answer", "published/answers/ID.json", "work, for the front"),
    ("keys", "published/keys.json", "work, for the front"),
    ("tail", "published/tails/NAME.json", "work, for the front"),
    ("receipt", "A receipt", "front and work, for the team"),
    ("notices", "notices.yaml", "the organiser, for work"),
)


def server() -> str:
    """The page about the files between the front and the work process."""
    says = (
        "The front and the work process share one folder (`RUNNER_WEB`) and nothing else. What each file is for, and what holds "
        "of it, stands in [the architecture](../explanation/architecture.md#the-server).\n"
    )
    parts = [says]
    for name, title, who in _SERVER:
        parts += _described(f"## {title}", name, f"\n\nWritten by {who}.")
    return page("Files of the server", *parts)
