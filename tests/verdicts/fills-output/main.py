import common

for number in range(60):
    common.write(b"x" * 2**20, f"part-{number}")
