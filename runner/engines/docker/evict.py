"""Emptying the caches of the engine's machine, from a container of ours, and seeing that it worked.

The kernel has one switch for it (``/proc/sys/vm/drop_caches``), which root may write; the container has no capability
besides (:func:`runner.engines.sandbox.evict_options`). It is proved on two files, one of the image and one of a volume:
every page of both is read, is found in memory, and after the eviction every page has to come from the disk again.
A page that comes from the disk is a major fault of the process that touches it: the kernel counts them, so nothing
depends on how fast the disk is.

The same container moves the kernel's counters (:mod:`runner.engines.docker.counters`).
"""

from __future__ import annotations

import json
import secrets
from typing import Any

from runner.engines import sandbox, tarstream
from runner.engines.base import Mount, Volume
from runner.engines.docker import counters
from runner.engines.docker.owner import me
from runner.engines.docker.volumes import DockerVolumes
from runner.engines.text import printable
from runner.engines.turns import cannot_evict
from runner.model.errors import PlatformError

PAGES = 64
SECONDS = 600  # a machine with much memory has much to give up

_EVICTION = r"""
import json, mmap, os, resource, sys, time
PAGE = mmap.PAGESIZE
def faults(path):
    'Pages of a file, and how many of them were not in memory.'
    with open(path, 'rb') as file:
        with mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as seen:
            seen.madvise(mmap.MADV_RANDOM)  # no page more than those that are touched
            count = -(-len(seen) // PAGE)
            before = resource.getrusage(resource.RUSAGE_SELF).ru_majflt
            for number in range(count):
                seen[number * PAGE]
            return count, resource.getrusage(resource.RUSAGE_SELF).ru_majflt - before
def read(path):
    with open(path, 'rb') as file:
        os.fsync(file.fileno())  # a page that is not yet on the disk stays in memory; takes long on a busy disk
        while file.read(1 << 20):
            pass
def read_into_memory(path):
    'Pages of a file, and how many were not in memory after each try to read them: others may empty the same caches.'
    missing = []
    while 0 not in missing and len(missing) < 10:
        read(path)
        count, faulted = faults(path)
        missing.append(faulted)
    return count, missing
def in_memory(path):
    'Whether the file lies in a file system that is memory itself.'
    kinds = {}
    with open('/proc/self/mounts') as mounts:
        for line in mounts:
            kinds[line.split()[1]] = line.split()[2]
    return kinds.get(path) in ('tmpfs', 'ramfs')
folder = os.path.dirname(os.__file__)
names = [os.path.join(folder, n) for n in os.listdir(folder) if n.endswith('.py')]
probes = {'volume': '/probe/file', 'image': max(names, key=os.path.getsize)}
said = {'memory': in_memory('/probe'), 'tries': {}}
try:
    for name, path in probes.items():
        count, said['tries'][name] = read_into_memory(path)
        said[name] = [count, said['tries'][name][-1]]
    begun = time.monotonic()
    for attempt in range(3):
        os.sync()
        for _ in range(2):
            with open('/proc/sys/vm/drop_caches', 'w') as switch:
                switch.write('3')
        after = {name: faults(path)[1] for name, path in probes.items()}
        if all(after[name] == said[name][0] for name in probes):
            break
    said['seconds'] = time.monotonic() - begun
    said['after'] = after
    said['counters'] = move_counters()
except OSError as error:
    said['error'] = str(error)
print(json.dumps(said))
"""
PROGRAM = counters.PROGRAM + _EVICTION


def evict(engine: DockerVolumes) -> float:
    """Empty the caches; returns the seconds that the kernel took. Raises E311 when it cannot be done or proved."""
    text = _run(engine)
    try:
        said = json.loads(text)
    except ValueError:
        raise cannot_evict(f"our container said {printable(text, 200) or 'nothing'}") from None
    problem = judge(said)
    if problem:
        raise cannot_evict(problem)
    return float(said.get("seconds", 0.0))


def judge(said: dict[str, Any]) -> str:
    """What is wrong with an eviction, from what the program reports; empty when it is proved."""
    if "error" in said:
        return printable(str(said["error"]), 200)
    if problem := counters.judge(said.get("counters")):
        return problem
    if said["memory"]:
        return "" if said["volume"][1] == 0 else "its data lie in memory, but were not found there"
    for name in ("volume", "image"):
        pages, missing = said[name]
        problem = f"a file of the {name} cannot be measured"
        if pages < PAGES // 4:
            return f"{problem}: it has {pages} pages, and {PAGES // 4} are needed"
        if missing:
            tries = ", ".join(map(str, said["tries"][name]))
            return f"{problem}: of {pages} pages, as many were not in memory after each try to read them: {tries}"
        if said["after"][name] != pages:
            return f"of {pages} pages of a file of the {name}, {pages - said['after'][name]} stayed in memory"
    return ""


def _run(engine: DockerVolumes) -> str:
    """Run the program in its container, with a new volume; returns what it printed."""
    tag = secrets.token_hex(6)
    labels = {"proctor.attempt": f"evict-{tag}", "proctor.owner": me(), "proctor.role": "evict"}
    volume = Volume(f"proctor-evict-{tag}")
    body = sandbox.evict_options(
        engine.keeper(),
        ("python3", "-c", PROGRAM),
        Mount(volume, "/probe", read_only=False),  # engines copy nothing into what is read-only
        labels=labels,
        own_profile=engine.own_profile,
        user_namespaces=engine.user_namespaces,
    )
    try:
        with engine.clients.calling("emptying its machine's caches") as api:
            api.create_volume(volume.name, driver="local", labels=labels)
            container = api.create_container_from_config(body, name=f"proctor-evict-{tag}")["Id"]
            probe = tarstream.stream([("file", secrets.token_bytes(4096 * PAGES))])
            api.put_archive(container, "/probe", b"".join(probe))
            api.start(container)
        with engine.clients.streaming("waiting for its machine's caches to be emptied", SECONDS) as (api, _):
            api.wait(container, timeout=SECONDS)
        with engine.clients.calling("reading what an eviction said") as api:
            out, err = (api.logs(container, stdout=which, stderr=not which) for which in (True, False))
        return bytes(out or err).decode("utf-8", "replace")
    except PlatformError as error:
        if error.code == "E301":
            raise
        raise cannot_evict(f"{error.what}: {error.why}".rstrip(".")) from error
    finally:
        engine.clients.remove(attempt=labels["proctor.attempt"], owner=me())
