import common

lines = common.good_lines()
topic, q0, document, rank, _, tag = lines[2].split()
lines[2] = " ".join([topic, q0, document, rank, "nan", tag])
common.write(lines)
