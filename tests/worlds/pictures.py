"""``make pictures``: every page of :mod:`tests.worlds.pages` as a picture, by role, in light and dark, at three widths.

``python -m tests.worlds.pictures [FOLDER] [--only WORD]`` writes ``ROLE-PAGE-WIDTH-SCHEME.png`` into a folder that is not kept.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from pathlib import Path
from typing import Any

from tests.worlds.browser import launched
from tests.worlds.pages import ROLES, Pages, pages

WIDTHS = {360: 780, 768: 1024, 1440: 900}
MOST = 4000  # pixels of a picture's height: the rest of a long list looks like its beginning


def take(site: Pages, to: Path, only: str = "") -> int:
    """Pictures of a site's pages in a folder; how many there are. ``only``: of pages whose role or name has this word."""
    taken = 0
    with launched() as browser:
        for role in ROLES:
            found = {name: at for name, at in site.of(role).items() if only in f"{role} {name}"}
            for width, height in WIDTHS.items():
                for scheme in ("light", "dark"):
                    options: Any = {"viewport": {"width": width, "height": height}, "color_scheme": scheme}
                    context = browser.new_context(**options)
                    at = context.new_page()
                    if role in site.tokens:
                        at.goto(f"{site.url}/sign-in")
                        at.fill("#token", str(site.tokens[role]))
                        at.click("main button")
                    site.alive()
                    for name, address in found.items():
                        at.goto(address)
                        tall = min(MOST, at.evaluate("document.documentElement.scrollHeight"))
                        file = re.sub(r"[^a-z0-9]+", "-", f"{role} {name} {width} {scheme}")
                        clip: Any = {"x": 0, "y": 0, "width": width, "height": max(tall, height)}
                        at.screenshot(path=to / f"{file}.png", full_page=True, clip=clip)
                        taken += 1
                    context.close()
    return taken


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description="Take pictures of every page.")
    parser.add_argument("to", type=Path, nargs="?", default=Path("pictures"))
    parser.add_argument("--only", default="", help="pages whose role or name has this word")
    parser.add_argument("--runs", type=int, default=150)
    given = parser.parse_args()
    given.to.mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as root,
        pages(Path(root), given.runs) as site,
    ):
        print(f"{take(site, given.to, given.only)} pictures in {given.to}/")


if __name__ == "__main__":
    main()
