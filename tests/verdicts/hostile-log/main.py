import sys

sys.stdout.buffer.write(b"\x1b[2J\x1b]0;owned\x07 \xff\xfe all is well\n")
sys.exit(1)
