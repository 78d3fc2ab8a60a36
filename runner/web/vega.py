"""The script by which plots on pages answer: Vega and its interpreter as they are in ``vendor/``, and ours, as one file."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files

# The interpreter is a module that imports from Vega, which is none: its first and last lines in the words of a script.
_IMPORT = "import { ascending, isString, DisallowedObjectProperties } from 'vega-util';"
_EXPORT = "export { expression as expressionInterpreter };"


@cache
def script() -> tuple[str, bytes]:
    """Vega, its interpreter and our script as one, and the SHA-256 of that, which is its name."""
    vega, interpreter, ours = (
        files(package).joinpath(name).read_text("utf-8")
        for package, name in (
            ("runner.web.vendor", "vega.min.js"),
            ("runner.web.vendor", "vega-interpreter.js"),
            ("runner.web", "plots.js"),
        )
    )
    if _IMPORT not in interpreter or _EXPORT not in interpreter:
        raise ValueError("vega-interpreter.js imports or exports something else")
    taken = interpreter.replace(_IMPORT, "const { ascending, isString, DisallowedObjectProperties } = vega;")
    taken = taken.replace(_EXPORT, "return expression;")
    licence = "/* Vega and vega-interpreter: BSD-3-Clause, University of Washington Interactive Data Lab; see runner/web/vendor */"
    parts = (
        licence,
        '"use strict";',
        vega,
        f"const expressionInterpreter = (() => {{\n{taken}\n}})();",
        ours,
    )
    content = "\n".join(parts).replace("//# sourceMappingURL=vega-interpreter.js.map", "").encode()
    return hashlib.sha256(content).hexdigest(), content
