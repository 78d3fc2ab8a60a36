import gzip

import common

common.write(gzip.compress("".join(line + "\n" for line in common.good_lines()).encode()), "run.txt.gz")
