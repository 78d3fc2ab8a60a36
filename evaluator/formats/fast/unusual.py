"""How the numpy way says that a block is for another way."""


class Unusual(Exception):
    """There is something in the block that is not read here; nothing was changed yet."""
