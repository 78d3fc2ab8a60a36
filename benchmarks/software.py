"""Whether common software goes on in the sandbox, with a loopback and without: one line a program.

``python -m benchmarks.software`` builds an image with the programs of ``software_image/`` (Debian's and PyPI's
packages: the build needs a network) and runs each in a container with every wall. It ends with 1 when one of them
fails that has no reason to. The results stand in ``docs/explanation/software-in-the-sandbox.md``.
"""

from __future__ import annotations

import secrets
import sys
from dataclasses import replace
from pathlib import Path

from runner.engines.base import BuildSpec, ContainerSpec
from runner.engines.docker.engine import DockerEngine
from runner.engines.docker.volumes import BASES
from runner.model import config
from runner.model.container import ImageRef
from runner.model.limits import GIB, MIB, Limits
from runner.provision.engine import engine_host

LIMITS = Limits(memory=2 * GIB, cpus=2, wall_clock=300, tmp=512 * MIB, open_files=4096)
JAVA = "java -Xmx400m {} -cp '/usr/share/java/*' /tried/Tried.java"
PYTHON = "python3 -c '{}'"
# name: (command, whether it needs a loopback)
PROGRAMS = {
    "coreutils": (
        "seq 100000 | shuf > a && cp a b && cat b > c && sort -o d c && dd if=d of=e conv=fsync bs=64k && sync"
        " && sync -f e && cmp d e && split -l 1000 e && truncate -s 1M f && mv e g && df . && nproc",
        False,
    ),
    "git": (
        "git init -q r && cd r && git config user.email a@b && git config user.name n && seq 1000 > f && git add f"
        " && git -c core.fsync=all -c core.fsyncMethod=batch commit -qm x && git gc -q --aggressive && git fsck",
        False,
    ),
    "sqlite": (
        "sqlite3 x 'pragma journal_mode=wal; create table t(a); insert into t values(1); pragma mmap_size=1000000;"
        " select sum(a) from t; vacuum'",
        False,
    ),
    "numpy": (
        PYTHON.format(
            'import numpy as np; a = np.memmap("n", "f4", "w+", shape=(999, 99)); a[:] = 1; a.flush();'
            ' print((np.memmap("n", "f4", "r", shape=(999, 99)) @ a.T).sum())'
        ),
        False,
    ),
    "psutil": (
        PYTHON.format(
            "import psutil as p; print(p.Process().create_time(), p.virtual_memory(), p.swap_memory(),"
            " p.cpu_percent(0.1), p.boot_time(), p.disk_io_counters(), p.cpu_stats(), list(p.process_iter()))"
        ),
        False,
    ),
    "torch": (
        PYTHON.format(
            "import torch, torch.utils.data as d; x = torch.randn(500, 500);"
            ' torch.save(x, "t"); assert torch.equal(torch.load("t"), x);'
            " m = torch.nn.Linear(500, 2); o = torch.optim.Adam(m.parameters()); m(x).sum().backward(); o.step();"
            ' torch.from_file("t", size=100);'
            " print(sum(len(b[0]) for b in d.DataLoader(d.TensorDataset(x), batch_size=50, num_workers=2)))"
        ),
        False,
    ),
    "rocksdb": (
        "db_bench --db=/tmp/b --benchmarks=fillseq,fillsync,readrandom,compact --num=20000"
        " && ldb --db=/tmp/l --create_if_missing put a b && ldb --db=/tmp/l compact && ldb --db=/tmp/l get a",
        False,
    ),
    "rocksdict": (
        PYTHON.format(
            "from rocksdict import Rdict, Options; o = Options(); o.create_if_missing(True); o.set_use_fsync(True);"
            ' o.set_bytes_per_sync(65536); d = Rdict("/tmp/d", o);'
            ' d[1] = "x"; d.flush(); d.compact_range(None, None); assert d[1] == "x"; d.close()'
        ),
        False,
    ),
    "tantivy": (
        PYTHON.format(
            'import os, tantivy as t; os.mkdir("i"); b = t.SchemaBuilder(); b.add_text_field("t", stored=True);'
            ' i = t.Index(b.build(), path="i"); w = i.writer(30_000_000);'
            ' [w.add_document(t.Document(t="hello %d" % n)) for n in range(999)]; w.commit();'
            ' w.wait_merging_threads(); i.reload(); print(i.searcher().search(i.parse_query("hello", ["t"]), 5).count)'
        ),
        False,
    ),
    "lmdb": (
        PYTHON.format(
            'import lmdb; e = lmdb.open("l", map_size=1 << 22); t = e.begin(write=True); t.put(b"a", b"b");'
            " t.commit(); e.sync(True); e.close()"
        ),
        False,
    ),
    "duckdb": (
        PYTHON.format(
            'import duckdb; c = duckdb.connect("u"); c.execute("create table t as select * from range(99999) r(x)");'
            ' c.execute("checkpoint"); print(c.execute("select sum(x) from t").fetchone())'
        ),
        False,
    ),
    "java": (JAVA.format(""), True),
    "java, parallel collector": (JAVA.format("-XX:+UseParallelGC -XX:+AlwaysPreTouch"), True),
    "java, Z collector": (JAVA.format("-XX:+UseZGC"), True),
    "java, Shenandoah": (JAVA.format("-XX:+UseShenandoahGC"), True),
}


def run(engine: DockerEngine, image: ImageRef, command: str, limits: Limits) -> tuple[bool, str]:
    """Whether a command ended well, and the end of what it wrote."""
    with engine.session(f"bench-{secrets.token_hex(6)}") as session:
        spec = ContainerSpec("software", image, ("sh", "-c", "cd /tmp && " + command), limits)
        handle = session.start(spec)
        ended = handle.wait(limits.wall_clock)
        text = handle.logs("stdout", 4000) + handle.logs("stderr", 2000)
    return ended.code == 0, text.decode("utf-8", "replace")


def main() -> int:
    """Print a line for each program and loopback; returns the exit code."""
    engine = DockerEngine(engine_host(config.load()))
    folder = Path(__file__).with_name("software_image")
    base = next(name for name in BASES if engine.clients.get().images(name))
    image = engine.build(
        BuildSpec(folder, tag="proctor/bench-software", args={"BASE_IMAGE": base}, network=True)
    )
    failures = 0
    for name, (command, needs) in PROGRAMS.items():
        for loopback in (True, False):
            fine, text = run(engine, image, command, replace(LIMITS, loopback=loopback))
            expected = fine or (needs and not loopback)
            failures += not expected
            said = "works" if fine else "fails, as it must" if expected else "FAILS"
            print(f"{name:26} {'' if loopback else 'no '}loopback: {said}", flush=True)
            if not fine:
                lines = [line for line in text.splitlines() if "FAILED" in line or not expected]
                print("\n".join(f"    {line[:150]}" for line in lines[-12:]))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
