import subprocess
import sys

import common

BOMB = "held = []\nwhile True: held.append(bytearray(b'x' * 2**20))"
child = subprocess.run([sys.executable, "-c", BOMB])
print("the child ended with", child.returncode)
common.write(common.good_lines())
