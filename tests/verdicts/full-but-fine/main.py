import common

common.write(common.good_lines())
try:
    for number in range(60):
        common.write(b"x" * 2**20, f"cache-{number}")
except OSError as error:
    print("full:", error)
