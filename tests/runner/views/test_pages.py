"""The one environment of templates: escaping, strict, and loaded only where a page is made."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from jinja2 import UndefinedError

from runner.views.pages import environment, policy
from runner.web import pages as web

ROOT = Path(__file__).parents[3]


def test_what_is_put_in_is_escaped_and_what_is_missing_is_an_error() -> None:
    made = environment().from_string("<p title='{{ text }}'>{{ text }}</p>")
    text = made.render(text="<b>\"'&")
    assert text == "<p title='&lt;b&gt;&#34;&#39;&amp;'>&lt;b&gt;&#34;&#39;&amp;</p>"
    with pytest.raises(UndefinedError):
        made.render()


@pytest.mark.parametrize("path", sorted(ROOT.glob("runner/**/*.html")), ids=lambda path: path.name)
def test_templates_take_nothing_as_markup_but_what_is_ours(path: Path) -> None:
    """Style sheets and scripts of ours, sections that templates of kinds have made, drawings, and pieces of pages that work published."""
    text = path.read_text("utf-8")
    assert text.count("|safe") == sum(
        map(
            text.count,
            (
                "asset(",
                "{{ section|safe }}",
                "{{ piece|safe }}",
                "{{ svg|safe }}",
                "{{ plot|safe ",
                "{{ by_topic|safe ",
                "{{ figure|safe }}",
                "{{ figure.html|safe }}",
                "{{ one.html|safe }}",
                "{{ about|safe }}",
                "{{ before|safe }}",  # the two parts of such a piece, around a log that grows
                "{{ behind|safe }}",
            ),
        )
    )
    assert "autoescape" not in text and "|tojson" not in text and " on" + "click" not in text
    if path.parent == ROOT / "runner/web/templates":  # the front has no views
        assert web.environment().get_template(path.name).name == path.name
        return
    name = f"{'.'.join(path.parent.relative_to(ROOT).parts)}/{path.name}"
    assert environment().get_template(name).name == name


def test_a_policy_names_one_style_and_at_most_one_script() -> None:
    style, script = "runner.annotation/sheet.css", "runner.annotation/sheet.js"
    assert policy(style).count("sha256-") == 1 and "script-src" not in policy(style)
    assert policy(style, script).count("sha256-") == 2 and "unsafe" not in policy(style, script)


def test_help_and_lists_load_no_templates() -> None:
    code = (
        "import sys\nfrom runner.cli.main import load_commands\nload_commands()\n"
        "import runner.views.show.contents, runner.annotation.sheets, runner.views.leaderboard.export\n"
        "print([name for name in ('jinja2', 'pandas') if name in sys.modules])"
    )
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "[]"
