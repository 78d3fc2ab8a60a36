import common

for number in range(100_000):
    common.write(b"", f"file-{number}")
