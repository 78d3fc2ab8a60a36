// Plots that answer: whoever points at one, touches it or walks to it by keys gets it drawn anew with what each mark is.
// Without this script the drawing stands there as it was published, with its data beside it. The expressions of a specification
// are walked by an interpreter and never made to code, so that the page's policy allows none.
(() => {
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;

  const told = (_, event, item, value) => {
    tip.hidden = value === null || value === undefined || value === "";
    if (tip.hidden) return;
    const list = document.createElement("dl");
    for (const [name, text] of Object.entries(value)) {
      list.append(document.createElement("dt"), document.createElement("dd"));
      list.children[list.children.length - 2].textContent = name;
      list.lastChild.textContent = text;
    }
    tip.replaceChildren(list);
    if (!tip.isConnected) document.body.append(tip);
    const width = document.documentElement.clientWidth;
    tip.style.left = `${Math.max(0, Math.min(event.clientX + 14, width - tip.offsetWidth - 8))}px`;
    tip.style.top = `${event.clientY + 14}px`;
  };

  // No page in a folder is given the file beside it, but it may run a script: there each specification is one, too.
  const specification = location.protocol !== "file:" ? async at => (await fetch(at)).json() : at => new Promise((done, failed) => {
    const script = document.createElement("script");
    script.src = at.replace(/json$/, "js");
    script.onload = () => done(JSON.parse(specifications[at.match(/([0-9a-f]+)[.]json$/)[1]]));
    script.onerror = failed;
    document.head.append(script);
  });

  const answer = async figure => {
    const drawing = figure.querySelector(".drawing");
    const at = figure.querySelector("a[data-specification]");
    if (drawing === null || at === null || figure.dataset.answers) return;
    figure.dataset.answers = "soon";
    const refuse = () => Promise.reject(new Error("nothing is loaded"));
    const place = document.createElement("div");
    const view = new vega.View(vega.parse(await specification(at.href), null, { ast: true }), {
      expr: expressionInterpreter,
      loader: { load: refuse, sanitize: refuse, http: refuse, file: refuse },
      logLevel: vega.Error,
      renderer: "svg",
      container: place,
      hover: true,
      tooltip: told,
    });
    await view.runAsync();
    drawing.replaceChildren(place);
    figure.dataset.answers = "yes";
  };

  for (const kind of ["pointerover", "focusin", "touchstart"])
    document.addEventListener(kind, event => {
      const figure = event.target instanceof Element && event.target.closest("figure.plot");
      if (figure) answer(figure).catch(() => {});
      else tip.hidden = true;
    }, { passive: true });
})();
