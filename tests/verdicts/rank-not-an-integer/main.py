import common

lines = common.good_lines()
topic, q0, document, rank, score, tag = lines[2].split()
lines[2] = " ".join([topic, q0, document, f"{rank}.0", score, tag])
common.write(lines)
