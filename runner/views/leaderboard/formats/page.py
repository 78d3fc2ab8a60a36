"""A leaderboard as one HTML page: no scripts, nothing loaded from elsewhere."""

from __future__ import annotations

import html

from runner.views.leaderboard.formats import parts
from runner.views.leaderboard.rows import LeaderboardTable

_STYLE = """
:root { color-scheme: light dark; --line: #8886; --soft: #8882; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 88rem; padding: 0 1rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding: .5rem 0; }
th, td { padding: .35rem .5rem; border-bottom: 1px solid var(--line); text-align: right; vertical-align: top; }
thead th { border-bottom: 2px solid var(--line); white-space: nowrap; }
th[scope=row], .text { text-align: left; white-space: nowrap; }
td.why { text-align: left; overflow-wrap: break-word; min-width: 16rem; }
tr.baseline { background: var(--soft); }
.interval { white-space: nowrap; }
@media print { body { margin: 0; max-width: none; } .scroll { overflow: visible; } }
"""


def to_html(table: LeaderboardTable) -> str:
    """One self-contained page: no script, nothing fetched from anywhere; readable by screen readers and in print."""
    heads, rows = parts.head_cells(table), [parts.row_cells(table, r) for r in table.rows]
    page = [
        "<!doctype html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{_h(table.title)}: {_h(table.table)}</title>",
        f"<style>{_STYLE}</style>",
        "</head>",
        "<body>",
        "<main>",
        f"<h1>{_h(table.title)}</h1>",
    ]
    if rows:
        used = parts.used_columns(heads, rows)
        page += ['<div class="scroll" tabindex="0" role="region" aria-label="Leaderboard">', "<table>"]
        page += [f"<caption>{_h(parts.caption(table))}</caption>", "<thead><tr>"]
        page += [f'<th scope="col"{_css(heads[i])}>{_h(heads[i])}</th>' for i in used]
        page += ["</tr></thead>", "<tbody>"]
        for row, cells in zip(table.rows, rows, strict=True):
            page.append('<tr class="baseline">' if row.baseline else "<tr>")
            for i in used:
                if heads[i] == "software":
                    page.append(f'<th scope="row">{_h(cells[i])}</th>')
                else:
                    page.append(f"<td{_css(heads[i])}>{_h(cells[i])}</td>")
            page.append("</tr>")
        page += ["</tbody>", "</table>", "</div>"]
    page += ["<ul>", *(f"<li>{_h(line)}</li>" for line in parts.legend(table)), "</ul>"]
    if any(judge.brief() != judge.line() for judge in table.judges):
        page += ["<details><summary>What is known of the judges</summary>", "<ul>"]
        page += [*(f"<li>{_h(judge.line())}</li>" for judge in table.judges), "</ul></details>"]
    if table.unranked:
        page += ['<div class="scroll" tabindex="0" role="region" aria-label="Not ranked">', "<table>"]
        page += ["<caption>Not ranked</caption>", "<thead><tr>"]
        page += [f'<th scope="col" class="text">{head}</th>' for head in parts.BELOW]
        page += ["</tr></thead>", "<tbody>"]
        for software, *cells, why in parts.below_cells(table):
            page.append(f'<tr><th scope="row">{_h(software)}</th>')
            page += [*(f'<td class="text">{_h(cell)}</td>' for cell in cells)]
            page.append(f'<td class="why">{_h(why)}</td></tr>')
        page += ["</tbody>", "</table>", "</div>"]
    page += ["</main>", "</body>", "</html>"]
    return "\n".join(page) + "\n"


def _h(value: str) -> str:
    return html.escape(value, quote=True)


def _css(head: str) -> str:
    if head in parts.LEFT:
        return ' class="text"'
    return ' class="interval"' if head == "95 %" else ""
