import contextlib

for name in ("/tmp/a", "/dev/shm/a"):
    with contextlib.suppress(OSError), open(name, "wb") as file:
        while True:
            file.write(b"x" * 2**16)
held = []
while True:
    held.append(bytearray(b"x" * 2**20))
