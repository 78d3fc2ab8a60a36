import os

import common

common.write(common.good_lines())
for name in (b"\x1b[2Jgone", b"a\nb", b"\xff\xfe", b"-rf", b"<script>alert(1)</script>".replace(b"/", b"\\")):
    with open(os.path.join(common.OUTPUT.encode(), name), "wb") as file:
        file.write(b"x")
