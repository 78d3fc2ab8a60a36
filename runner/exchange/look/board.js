"use strict";
// A leaderboard to look around in: sort, find, choose columns, one row a team, differences to a row. What was chosen stands in the
// address, after "#", so that a link shows the same. Without this script the page is whole, in the order of the ranks.
(() => {
  const STATE = ["sort", "find", "one", "apart", "against", "without"];
  const $ = id => document.getElementById(id);
  const read = () => Object.fromEntries(STATE.map(name => [name, new URLSearchParams(location.hash.slice(1)).get(name) || ""]));
  const write = state => {
    const said = new URLSearchParams(Object.entries(state).filter(([, value]) => value));
    history.replaceState(null, "", location.pathname + location.search + (String(said) && `#${said}`));
    apply();
  };
  const change = more => write({ ...read(), ...more });

  const text = cell => (cell.querySelector(".interval") || cell.querySelector(".figure") || cell).textContent.trim();
  const value = cell => {
    if (text(cell) === "–") return null; // a measure without a value
    if (cell.dataset.sort !== undefined) return cell.dataset.sort === "" ? null : Number(cell.dataset.sort);
    const found = Number.parseFloat(text(cell).replace(/^[[(<]/, "").replace("−", "-"));
    return Number.isNaN(found) ? text(cell) || null : found;
  };
  // A column and a way, "95 % up": names of columns have blanks themselves.
  const sorting = said => [said.slice(0, said.lastIndexOf(" ")), said.slice(said.lastIndexOf(" ") + 1)];
  const collator = new Intl.Collator();
  const compare = (a, b) => typeof a === "number" && typeof b === "number" ? a - b : collator.compare(String(a), String(b));

  const sorts = head => head.dataset.unsorted === undefined; // a column of steps, not of figures, is in no order
  const ordered = (rows, heads, state) => {
    const [key, way] = sorting(state.sort), at = heads.findIndex(head => head.dataset.key === key && sorts(head));
    const sign = way === "down" ? -1 : 1;
    const by = (x, y) => {
      if (x === null || y === null) return (x === null) - (y === null); // what has no value stands last, either way
      return sign * compare(x, y);
    };
    // Each row is read once: a page is asked for a cell's text thousands of times otherwise.
    const known = row => ({
      row,
      n: Number(row.dataset.n),
      apart: Number(Boolean(state.apart) && row.classList.contains("baseline")),
      value: at < 0 ? 0 : at === 1 ? row.dataset.name : value(row.cells[at]),
    });
    return rows.map(known).sort((a, b) => a.apart - b.apart || by(a.value, b.value) || a.n - b.n).map(one => one.row);
  };

  // The rows that stand for their teams: the first by rank, or the one that was handed in last.
  const chosen = (rows, one) => {
    const found = new Map();
    for (const row of [...rows].sort((a, b) => a.dataset.n - b.dataset.n)) {
      const before = found.get(row.dataset.team);
      if (before === undefined || (one === "latest" && row.dataset.at > before.dataset.at)) found.set(row.dataset.team, row);
    }
    return new Set(found.values());
  };

  const differences = (rows, heads, name) => {
    for (const old of $("board").querySelectorAll(".difference")) old.remove();
    const against = rows.find(row => row.dataset.name === name);
    for (const row of rows) row.classList.toggle("against", row === against);
    if (against === undefined) return;
    const decimals = cell => (/\.(\d+)/.exec(text(cell)) || ["", ""])[1].length;
    heads.forEach((head, at) => {
      if (head.dataset.measure === undefined) return;
      const from = value(against.cells[at]);
      for (const row of rows) {
        const to = value(row.cells[at]);
        if (row === against || typeof from !== "number" || typeof to !== "number") continue;
        const said = document.createElement("small"), by = to - from;
        said.className = "difference " + (by === 0 ? "" : (by > 0) === (head.dataset.measure === "higher") ? "good" : "bad");
        said.textContent = (by < 0 ? "−" : "+") + Math.abs(by).toFixed(decimals(row.cells[at]));
        row.cells[at].append(said);
      }
    });
  };

  const apply = () => {
    const board = $("board");
    if (board === null) return;
    const state = read(), heads = [...board.tHead.rows[0].cells], body = board.tBodies[0], rows = [...body.rows];
    const [key, way] = sorting(state.sort), without = new Set(state.without.split("|"));
    const shown = state.one ? chosen(rows, state.one) : new Set(rows), words = state.find.toLowerCase().split(/\s+/);
    let count = 0;
    for (const row of rows) {
      row.hidden = !shown.has(row) || !words.every(word => row.cells[1].textContent.toLowerCase().includes(word));
      count += !row.hidden;
    }
    differences(rows, heads, state.against);
    heads.forEach((head, at) => {
      if (sorts(head) && head.querySelector("button") === null) {
        const button = document.createElement("button");
        button.type = "button";
        button.className = "sort";
        button.append(...head.childNodes);
        head.append(button);
      }
      if (head.dataset.key === key && sorts(head)) head.setAttribute("aria-sort", way === "down" ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
      const hidden = without.has(head.dataset.key);
      if (head.hidden !== hidden) for (const row of [head.parentNode, ...rows]) row.cells[at].hidden = hidden;
    });
    const next = ordered(rows, heads, state);
    if (next.some((row, at) => row !== body.rows[at])) body.append(...next);
    for (const name of ["find", "one", "against"]) if ($(name).value !== state[name]) $(name).value = state[name];
    const row = state.against.split(" ")[0].replace("/", "."); // without what is said of the row behind its name
    if (row && $("tests")) $("tests").href = $("tests").href.replace(/against\/[^/]+/, `against/${encodeURIComponent(row)}`);
    $("apart").checked = Boolean(state.apart);
    for (const one of document.querySelectorAll("input[data-column]")) one.checked = !without.has(one.dataset.column);
    $("rows").textContent = count === rows.length ? `${count} rows` : `${count} of ${rows.length} rows`;
  };

  const tsv = () => [...$("board").rows].filter(row => !row.hidden).map(row =>
    [...row.cells].filter(cell => !cell.hidden)
      .map(cell => cell.scope === "row" ? row.dataset.name : cell.dataset.key || text(cell)).join("\t")).join("\n") + "\n";

  document.addEventListener("click", event => {
    const button = event.target.closest("button");
    if (button === null || $("board") === null) return;
    if (button.className === "sort") {
      const head = button.parentNode, { key, measure } = head.dataset, [old, way] = sorting(read().sort);
      const first = measure === "higher" ? "down" : "up";
      if (old !== key) change({ sort: `${key} ${first}` });
      else change({ sort: way === first ? `${key} ${first === "up" ? "down" : "up"}` : "" });
    } else if (button.id === "as-tsv") button.dataset.copies = tsv();
    else if (button.id === "link") button.dataset.copies = location.href;
    else if (button.id === "again") write({});
  }, true); // before what copies
  document.addEventListener("input", event => {
    const { id, value: said, checked, dataset } = event.target;
    if (["find", "one", "against"].includes(id)) change({ [id]: said });
    else if (id === "apart") change({ apart: checked ? "yes" : "" });
    else if (dataset.column !== undefined) {
      const without = new Set(read().without.split("|").filter(Boolean));
      without[checked ? "delete" : "add"](dataset.column);
      change({ without: [...without].join("|") });
    }
  });
  addEventListener("hashchange", apply);
  document.addEventListener("changed", apply); // site.js has fetched the page again
  apply();
})();
