"use strict";
// Follows the page: when the server says that it changed, it is fetched again, and what differs is put in its place.
(() => {
  const content = document.getElementById("content");
  const page = content.dataset.page;
  const pause = () => 500 * Math.random(); // not everybody asks at once
  let stream = null;

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

  // The log of a run that goes on. Its end stays in sight unless somebody has scrolled away from it.
  const MOST_LOG = 1000000; // characters of it that stay here
  const log = () => content.querySelector("section.log pre");
  const atEnd = one => one === null || one.scrollHeight - one.scrollTop - one.clientHeight < 8;
  const toEnd = one => { if (one !== null) one.scrollTop = one.scrollHeight; };
  const grow = ({ first, end, text }) => {
    const one = log(), have = Number(one?.dataset.end), ended = atEnd(one);
    if (one === null || end <= have) return;
    if (first > have) one.replaceChildren(); // something between is not there
    one.append(first < have ? [...text].slice(have - first).join("") : text);
    let over = one.textContent.length - MOST_LOG;
    if (first > have || over > 0) content.querySelector("section.log .cut").hidden = false;
    for (; over > 0 && one.childNodes.length > 1; one.firstChild.remove()) over -= one.firstChild.length;
    one.dataset.end = end;
    if (ended) toEnd(one);
  };

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
    said(stream !== null);
  };

  const follow = () => {
    if (stream !== null || document.hidden) return;
    const have = encodeURIComponent(content.dataset.tag);
    const end = log()?.dataset.end ?? 0;
    stream = new EventSource(`/live?page=${encodeURIComponent(page)}&have=${have}&log=${end}`);
    stream.addEventListener("log", event => grow(JSON.parse(event.data)));
    stream.addEventListener("open", () => said(true));
    stream.addEventListener("page", event => {
      if (event.data !== content.dataset.tag) setTimeout(() => load().catch(() => {}), pause());
    });
    stream.addEventListener("error", () => {
      said(false);
      if (stream === null || stream.readyState !== EventSource.CLOSED) return;
      stream = null; // it was refused: later again
      setTimeout(follow, 60000 + 10 * pause());
    });
  };

  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) return follow();
    if (stream !== null) stream.close();
    stream = null;
  });
  toEnd(log());
  follow();
})();
