import os
import time

import common

common.write(common.good_lines())
if os.fork() == 0:
    os.setsid()
    if os.fork() > 0:
        os._exit(0)
    time.sleep(0.5)
    while True:
        with open(f"{common.OUTPUT}/run.txt", "ab") as run:
            run.write(b"this line must never arrive\n")
        time.sleep(0.1)
