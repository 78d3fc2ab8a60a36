import common

common.write(common.good_lines(), "results.txt")
