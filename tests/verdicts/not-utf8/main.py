import common

lines = common.good_lines()
lines[3] = lines[3].replace("case", "caf\u00e9")
common.write("\n".join(lines).encode("latin-1"))
