"use strict";
// Follows the page: asks every few seconds whether it changed, and loads it again then. What differs is put in its place.
(() => {
  const content = document.getElementById("content");
  const page = content.dataset.page;
  const pause = () => 4000 + 2000 * Math.random(); // milliseconds; not everybody asks at once

  // Make `old` what `next` is; what is the same stays, with focus, scroll position and what was opened.
  const become = (old, next) => {
    if (old.isEqualNode(next)) return;
    if (old.nodeType !== Node.ELEMENT_NODE || old.nodeName !== next.nodeName) return old.replaceWith(next);
    for (const { name } of [...old.attributes])
      if (!next.hasAttribute(name) && name !== "open") old.removeAttribute(name);
    for (const { name, value } of next.attributes)
      if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    const after = [...next.childNodes], named = new Map([...old.children].map(child => [child.dataset.name, child]));
    after.forEach((child, at) => {
      const own = named.get(child.dataset?.name || null); // rows of a leaderboard, in whatever order they stand now
      if (own !== undefined && own !== old.childNodes[at]) old.insertBefore(own, old.childNodes[at] ?? null);
      if (at < old.childNodes.length) become(old.childNodes[at], child);
      else old.append(child);
    });
    while (old.childNodes.length > after.length) old.lastChild.remove();
  };

  // The end of the log of a run that goes on stays in sight unless somebody has scrolled away from it.
  const log = () => content.querySelector("section.log pre");
  const atEnd = one => one === null || one.scrollHeight - one.scrollTop - one.clientHeight < 8;
  const toEnd = one => { if (one !== null) one.scrollTop = one.scrollHeight; };

  const said = follows => {
    for (const one of document.querySelectorAll(".again")) one.hidden = follows;
    for (const one of document.querySelectorAll(".follows")) one.hidden = !follows;
  };

  const load = async () => {
    const answer = await fetch(location.href, { cache: "no-cache", headers: { Accept: "text/html" } });
    if (answer.redirected || answer.status === 404) return location.reload(); // signed out, or gone
    if (!answer.ok) return;
    const next = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("content");
    if (next === null) return;
    const ended = atEnd(log());
    become(content, next);
    if (ended) toEnd(log());
    document.dispatchEvent(new Event("changed"));
    said(true);
  };

  const look = async () => {
    const answer = await fetch(`/live?page=${encodeURIComponent(page)}`, { cache: "no-store" });
    said(answer.ok);
    if (answer.status === 404 || (answer.ok && (await answer.text()) !== content.dataset.tag)) await load();
  };

  const follow = async () => {
    if (!document.hidden) await look().catch(() => said(false));
    setTimeout(follow, pause());
  };

  toEnd(log());
  follow();
})();
