"""A hostile software that writes hidden bits into the page cache, and one that reads them out. Standard library only.

``send PATH…`` touches page *i* of every file when bit *i* of ``/hidden/bits`` is 1. ``receive PATH…`` touches every page
and prints, as JSON, which of them were in memory: by the kernel's own count of major faults, and by the clock.
"""

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


def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_majflt


if sys.argv[1] == "send":
    with open("/hidden/bits") as file:
        bits = file.read()
    for path in sys.argv[2:]:
        seen = mapped(path)
        for number, bit in enumerate(bits):
            if bit == "1":
                seen[number * PAGE]
else:
    found = {}
    for path in sys.argv[2:]:
        seen, atime = mapped(path), os.stat(path).st_atime_ns
        memory, times = "", []
        for number in range(len(seen) // PAGE):
            before, begun = faults(), time.perf_counter_ns()
            seen[number * PAGE]
            times.append(time.perf_counter_ns() - begun)
            memory += "0" if faults() > before else "1"
        found[path] = {"memory": memory, "times": times, "atime": atime}
    print(json.dumps(found, separators=(",", ":")))
