import common

lines = common.good_lines()
topic, q0, document, rank, _, tag = lines[0].split()
lines[0] = " ".join([topic, q0, document, rank, "1e999", tag])
common.write(lines)
