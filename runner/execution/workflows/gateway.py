"""Starting the gateway, the one container with a network, for an interactive run or for an evaluation.

Its configuration and key lie in a volume that no other container mounts; clients see a Unix socket. What it logs
and what models answered is taken out at the end, whatever became of the rest.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from runner.engines.base import ContainerSpec, Handle, Mount, Session, Volume
from runner.execution.replies import CALLS, Spent, calls, charge, learn, snapshot, spent, used_by
from runner.execution.workflows.starting import keep_log, last_words, wait_ready
from runner.model.container import ImageRef
from runner.model.errors import PlatformError
from runner.model.limits import GIB, MIB, parse_duration
from runner.model.sidecars import Service, socket_path
from schemas.details import Detail

KIB = 1024
FOLDER = "/gateway"  # where clients find the socket
REPLIES = "replies.jsonl"
READY = 30.0
_SLACK = 4 * MIB


@dataclass(frozen=True)
class GatewayFacts:
    """What a gateway did: questions, how many of them went to the endpoint, and refusals by their code."""

    calls: int = 0
    asked: int = 0
    refused: Mapping[str, int] = field(default_factory=dict)
    replay: bool = False
    used: Spent = field(default_factory=Spent)  # of the budget, by what the endpoint counted

    @property
    def unknown(self) -> bool:
        """Whether a question was refused because there was no key and no reply to it from before."""
        return self.replay and "unknown_reply" in self.refused

    @property
    def key_refused(self) -> bool:
        """Whether the endpoint did not take the key."""
        return "key_refused" in self.refused

    @property
    def over_budget(self) -> bool:
        """Whether a question was refused because the task's budget was used up."""
        return "budget_exceeded" in self.refused


def gateway_config(service: Service, gone: Spent = Spent()) -> dict[str, Any]:
    """What the gateway may do (schema ``gateway``): endpoint, models and budget of a service in task.yaml, of which some may be ``gone``.

    Never the key.
    """
    options = service.options
    calls = min(options["calls"], gone.calls + options.get("calls_per_run", options["calls"]))
    return {
        "schema_version": 1,
        "calls": calls,
        **{key: options[key] for key in ("base_url", "models", "tokens")},
        "cost": options.get("cost"),
        "price": options.get("price"),
        "concurrency": options.get("concurrency", 10),
        "timeout": parse_duration(options.get("timeout", 60.0)),
        **{key: options[key] for key in ("max_tokens", "retries") if key in options},
        "spent": asdict(gone),
    }


class GatewayRoom:
    """A gateway of one session.

    Args:
        session: Where it is to run. Its volumes are named at once, :meth:`start` starts it.
        service: What task.yaml says about it.
        image: The platform's image of sidecars.
        key: What the organiser's environment holds (:func:`runner.tasks.services.gateway_key`).
        known: The file of what models answered before.
    """

    def __init__(
        self,
        session: Session,
        service: Service,
        image: ImageRef,
        *,
        key: str | None,
        known: Path | None = None,
    ) -> None:
        self._session, self._service, self._image, self._known = session, service, image, known
        self._key = key
        self._log_bytes = min(GIB, 64 * MIB + 16 * KIB * int(service.options["calls"]))
        # Without the key that the task names nothing can be asked; what is known can still be answered.
        self.replay = bool(service.options.get("key")) and key is None
        self.socket: Volume = session.socket_volume("gateway")
        volume = partial(session.output_volume, inodes=16, owner="sidecar")
        self._config = volume("gateway-in", bytes=MIB)
        self._log = volume("gateway-log", bytes=self._log_bytes)
        size = known.stat().st_size if known is not None and known.is_file() else 0
        self._replies = volume("gateway-known", bytes=size + _SLACK) if size else None
        self.handle: Handle | None = None

    @property
    def mount(self) -> Mount:
        """What a client mounts: the socket, read-only."""
        return Mount(self.socket, FOLDER)

    def start(self) -> Handle:
        """Start the container. Raises :class:`PlatformError` when the engine cannot."""
        price = self._service.options.get("price")
        gone = spent(self._known, price) if self._known is not None else Spent()
        config = json.dumps(gateway_config(self._service, gone)).encode()
        files: dict[str, Path | bytes] = {"gateway.json": config}
        command = ["python3", "-m", "sidecars.gateway", "serve", "--config", "/in/gateway.json"]
        if self._key is not None:
            files["key"] = self._key.encode()
            command += ["--key-file", "/in/key"]
        self._session.copy_in(self._config, files)
        mounts = [
            Mount(self._config, "/in"),
            Mount(self._log, "/log", read_only=False),
            Mount(self.socket, FOLDER, read_only=False),
        ]
        command += ["--socket", socket_path("gateway")]
        command += ["--log", f"/log/{CALLS}", "--replies", f"/log/{REPLIES}"]
        if self._replies is not None:
            with snapshot(self._known) as copy:
                if copy is not None:
                    self._session.copy_in(self._replies, {REPLIES: copy})
                    mounts.append(Mount(self._replies, "/known"))
                    command += ["--known", f"/known/{REPLIES}"]
        command += ["--replay"] if self.replay else []
        limits = replace(self._service.limits, output=self._log_bytes)
        network = None if self.replay else str(self._service.options.get("network", "bridge"))
        spec = ContainerSpec("gateway", self._image, tuple(command), limits, tuple(mounts), network=network)
        self.handle = self._session.start(spec)
        return self.handle

    def ready(self, deadline: float = READY) -> None:
        """Wait until it listens. Raises :class:`PlatformError` when it ends before or takes longer."""
        assert self.handle is not None
        handle = self.handle
        fix = "look at services.gateway in task.yaml: its network, and that address and models are right"

        def check() -> None:
            if handle.ended():
                why = f"It ended. {last_words(handle)}".strip()
                raise PlatformError("the gateway did not start", why=why, fix=fix)

        wait_ready(handle, "gateway", deadline, check, fix=fix)

    def finish(self, staging: Path) -> GatewayFacts:
        """End it and take out its logs: ``calls.jsonl``, ``replies.jsonl`` and ``logs/gateway.log`` in ``staging``."""
        if self.handle is None:
            return GatewayFacts(replay=self.replay)
        self.handle.stop()
        (staging / "logs").mkdir(parents=True, exist_ok=True)
        keep_log(self.handle, staging / "logs" / "gateway.log", self._service.limits.log)
        wanted = (CALLS, REPLIES).__contains__
        self._session.copy_out(self._log, staging, allowed=wanted, max_bytes=self._log_bytes, max_files=16)
        price = self._service.options.get("price")
        facts = read_calls(staging / CALLS, replay=self.replay, price=price)
        if self._known is not None:
            # Here, not when the work is done: what was paid for is kept also when the work is given up.
            learn(self._known, staging / REPLIES)
            charge(self._known, facts.used, price)
        return facts


def read_calls(path: Path, *, replay: bool, price: Mapping[str, float] | None = None) -> GatewayFacts:
    """What the log of a gateway says; lines that cannot be read are calls that nothing is known of.

    ``price`` is what a million tokens cost, of questions (``input``) and replies (``output``).
    """
    count = asked = 0
    refused: Counter[str] = Counter()
    used = Spent()
    for data in calls(path):
        count += 1
        if data is None:
            continue
        code = data.get("code")
        if isinstance(code, str) and data.get("status") != 200:
            refused[code[:60]] += 1
        elif data.get("cached") is False:
            asked += 1
        used += used_by(data, price or {})
    return GatewayFacts(count, asked, dict(refused), replay, used)


def refusal(service: Service, facts: GatewayFacts, then: str) -> Detail | None:
    """What the organiser has to correct when the gateway refused questions for a reason of theirs; None if it did not.

    ``then`` is the command that does the work again.
    """
    if facts.unknown:
        refused, key = facts.refused["unknown_reply"], service.options["key"]
        return Detail("replies-unknown", refused=refused, calls=facts.calls, key=key, then=then)
    if facts.key_refused:
        return Detail("key-refused", key=service.options.get("key", "it"), then=then)
    share = service.options.get("calls_per_run")
    if facts.over_budget and share is not None and facts.used.calls >= share:
        return Detail("share-spent", calls=share, then=then)
    if facts.over_budget:
        return Detail("budget-spent", asked=facts.asked, then=then)
    return None
