"""The style sheet of a run's page, and the policy that allows this sheet and nothing else."""

from __future__ import annotations

import base64
import hashlib

# Colours are pairs for light and dark; text on every ground has a contrast of 4.5 or more. A mark is never colour alone.
STYLE = """
:root {
  color-scheme: light dark;
  --ground: #fff; --text: #1b1f24; --muted: #57606a; --line: #d0d7de; --soft: #f3f5f7; --link: #0550ae;
  --user: #e6effb; --good: #116329; --good-ground: #dff5e4; --bad: #a40e26; --bad-ground: #ffe9e7;
}
@media screen and (prefers-color-scheme: dark) {
  :root {
    --ground: #0f1317; --text: #e6e9ec; --muted: #a3adb8; --line: #3a434d; --soft: #1a2027; --link: #8bb9ff;
    --user: #16283f; --good: #7ee787; --good-ground: #10291a; --bad: #ffa198; --bad-ground: #35171b;
  }
}
* { box-sizing: border-box; }
body { font: 16px/1.55 system-ui, sans-serif; margin: 0; background: var(--ground); color: var(--text); }
header, main, footer { max-width: 64rem; margin: 0 auto; padding: 0 1rem; }
header { padding-top: 1.5rem; }
footer { margin-top: 3rem; padding: 1rem; border-top: 1px solid var(--line); color: var(--muted); font-size: .85rem; }
a { color: var(--link); }
:focus-visible { outline: 3px solid var(--link); outline-offset: 2px; }
a.skip { position: absolute; left: -100rem; }
a.skip:focus { position: static; }
h1 { font-size: 1.5rem; line-height: 1.3; margin: 0 0 .75rem; overflow-wrap: anywhere; }
h2 { font-size: 1.3rem; margin: 2.75rem 0 .75rem; padding-bottom: .25rem; border-bottom: 2px solid var(--line); }
h3 { font-size: 1.1rem; margin: 0 0 .5rem; overflow-wrap: anywhere; }
h4 { font-size: .8rem; margin: 1.5rem 0 .35rem; color: var(--muted); text-transform: uppercase; letter-spacing: .05em; }
dl.facts { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1.25rem; margin: 0; }
dl.facts dt { color: var(--muted); }
dl.facts dd { margin: 0; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--muted); padding: .35rem 0; }
th, td { padding: .3rem .75rem .3rem 0; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
tbody th { font-weight: 500; }
th.number, td.number { text-align: right; }
td.number { white-space: nowrap; }
th, td { min-width: 3rem; max-width: 34rem; overflow-wrap: break-word; }
section.one { margin: 2rem 0 0; padding: 1rem 1.25rem 1.25rem; border: 1px solid var(--line); border-radius: .6rem; }
section.one:target { border-color: var(--link); }
nav ol, nav ul { padding-left: 1.75rem; }
nav li { margin: .2rem 0; overflow-wrap: anywhere; }
.claim { white-space: pre-line; overflow-wrap: anywhere; font-size: 1.05rem; font-style: italic; margin: .25rem 0 .5rem; }
.said { white-space: pre-line; overflow-wrap: anywhere; padding: .55rem .9rem; border-radius: .9rem; margin: .45rem 0; }
.who { font-weight: 600; font-size: .8rem; display: block; color: var(--muted); }
.user { background: var(--user); margin-right: 14%; border-bottom-left-radius: .15rem; }
.system { background: var(--soft); border-bottom-right-radius: .15rem; }
.failed { background: var(--bad-ground); border: 1px solid var(--bad); border-bottom-right-radius: .15rem; }
.reply { margin-left: 14%; }
.about { font-size: .85rem; color: var(--muted); margin: .3rem 0; overflow-wrap: anywhere; }
.bad { color: var(--bad); }
.good { color: var(--good); }
ul.chips { list-style: none; display: flex; flex-wrap: wrap; gap: .3rem; padding: 0; margin: .35rem 0; }
ul.chips > li { font-size: .8rem; padding: .05rem .55rem; border: 1px solid var(--line); border-radius: 1rem; overflow-wrap: anywhere; }
ul.chips > li.good { background: var(--good-ground); border-color: var(--good); }
ul.chips > li.bad { background: var(--bad-ground); border-color: var(--bad); }
ul.chips a { color: inherit; }
details { margin: .35rem 0; font-size: .9rem; }
details > summary { cursor: pointer; color: var(--muted); width: fit-content; }
details > summary .bad { font-weight: 600; }
details ul { padding-left: 1.25rem; }
details li { margin: .5rem 0; overflow-wrap: anywhere; }
details ul.chips { padding: 0; }
details ul.chips > li { margin: 0; }
.words { white-space: pre-line; overflow-wrap: anywhere; }
ol.sentences { padding-left: 1.75rem; }
ol.sentences > li { margin: 1.1rem 0; padding-left: .75rem; border-left: 4px solid var(--line); }
ol.sentences > li.reward { border-left-color: var(--good); }
ol.sentences > li.penalty { border-left-color: var(--bad); }
ol.sentences > li:target { background: var(--soft); }
tr:target { background: var(--soft); }
ul.plain { list-style: none; padding: 0; margin: .3rem 0; font-size: .9rem; }
ul.plain > li { overflow-wrap: anywhere; }
ul.given { list-style: none; padding: 0; margin: 0; }
pre { overflow-x: auto; background: var(--soft); padding: .75rem; border-radius: .4rem; font-size: .8rem; white-space: pre-wrap; overflow-wrap: anywhere; }
@media (max-width: 36rem) {
  .user { margin-right: 6%; }
  .reply { margin-left: 6%; }
  section.one { padding: .75rem; }
  dl.facts { gap: .15rem .75rem; }
}
@media print {
  body { font-size: 11pt; }
  header, main, footer { max-width: none; padding: 0; }
  .said, li, tr { break-inside: avoid; }
  h3, h4 { break-after: avoid; }
  nav, a.skip { display: none; }
  details::details-content { content-visibility: visible; display: block; }
  section.one { border: 0; padding: 0; }
}
"""


def policy() -> str:
    """The page's content security policy."""
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
