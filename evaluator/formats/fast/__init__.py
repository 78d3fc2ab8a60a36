"""Reading large TREC runs with numpy: a block of lines at a time, as bytes, offsets and 64-bit words."""

from __future__ import annotations

from importlib.util import find_spec


def there() -> bool:
    """Whether numpy is: where participants check a file by themselves it need not be, and every file is read all the same."""
    return find_spec("numpy") is not None
