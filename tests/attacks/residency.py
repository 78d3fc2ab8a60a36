"""A hostile software that writes hidden bits into the page cache, and one that reads them out. Standard library only.

``send PATH…`` touches page *i* of every file when bit *i* of ``/hidden/bits`` is 1. ``receive PATH…`` touches every page
and prints, as JSON, which of them were in memory: by the kernel's own count of major faults, and by the clock. A path with
``{}`` stands for a thousand names, which are looked up instead, by the clock alone: the kernel remembers those too, also
names that do not exist.
"""

import contextlib
import json
import mmap
import os
import resource
import sys
import time

PAGE = mmap.PAGESIZE


def mapped(path):
    with open(path, "rb") as file:
        seen = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    seen.madvise(mmap.MADV_RANDOM)  # else the kernel reads ahead and blurs the message
    return seen


def look_up(pattern, number):
    with contextlib.suppress(OSError):
        os.stat(pattern.format(number))


def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_majflt


if sys.argv[1] == "send":
    with open("/hidden/bits") as file:
        bits = file.read()
    for path in sys.argv[2:]:
        seen = None if "{" in path else mapped(path)
        for number, bit in enumerate(bits):
            if bit == "1" and seen is None:
                look_up(path, number)
            elif bit == "1":
                seen[number * PAGE]
else:
    found = {}
    for path in [path for path in sys.argv[2:] if "{" in path]:
        times = []
        for number in range(1000):
            begun = time.perf_counter_ns()
            look_up(path, number)
            times.append(time.perf_counter_ns() - begun)
        found[path] = {"times": times}
    for path in [path for path in sys.argv[2:] if "{" not in path]:
        seen, atime = mapped(path), os.stat(path).st_atime_ns
        memory, times = "", []
        for number in range(len(seen) // PAGE):
            before, begun = faults(), time.perf_counter_ns()
            seen[number * PAGE]
            times.append(time.perf_counter_ns() - begun)
            memory += "0" if faults() > before else "1"
        found[path] = {"memory": memory, "times": times, "atime": atime}
    print(json.dumps(found, separators=(",", ":")))
