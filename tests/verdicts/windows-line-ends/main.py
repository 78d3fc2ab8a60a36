import common

common.write("".join(line + "\r\n" for line in common.good_lines()))
