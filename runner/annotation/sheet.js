"use strict";
const root = document.documentElement, form = root.dataset.form, annotator = root.dataset.annotator;
const place = "labels-" + form + "-" + annotator;
const inputs = () => document.querySelectorAll("input[type=radio], textarea");
function kept() { try { return JSON.parse(localStorage.getItem(place) || "{}"); } catch (e) { return {}; } }
function keep() {
  const all = {};
  for (const one of inputs()) if (one.type !== "radio" || one.checked) if (one.value) all[one.name] = one.value;
  try { localStorage.setItem(place, JSON.stringify(all)); } catch (e) { /* not kept: the file still is */ }
}
function done(turn) {
  return [...turn.querySelectorAll("fieldset")].every(f => f.querySelector("input:checked"));
}
function show() {
  let open = 0, judged = 0;
  for (const debate of document.querySelectorAll("article")) {
    let before = true;
    for (const turn of debate.querySelectorAll(".turn")) {
      turn.hidden = !before;
      const asked = turn.querySelector("fieldset") !== null;
      if (asked) { if (done(turn)) judged += 1; else { open += 1; before = false; } }
    }
  }
  document.getElementById("state").textContent = judged + " answers judged, " + open + " to go.";
}
function answers() {
  const found = [];
  for (const debate of document.querySelectorAll("article")) for (const turn of debate.querySelectorAll(".turn")) {
    const row = {item: debate.dataset.item, turn: Number(turn.dataset.turn)};
    let any = false;
    for (const one of turn.querySelectorAll("input:checked")) {
      row[one.dataset.criterion] = one.value === "?" ? null : Number(one.value);
      any = true;
    }
    const said = turn.querySelector("textarea");
    if (said && said.value.trim()) { row.comment = said.value; any = true; }
    if (any) found.push(row);
  }
  return {schema_version: 1, form: form, annotator: annotator, answers: found};
}
document.getElementById("save").addEventListener("click", () => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([JSON.stringify(answers(), null, 1)], {type: "application/json"}));
  link.download = "answers-" + annotator + "-" + form + ".json";
  link.click();
});
const before = kept();
for (const one of inputs()) if (one.name in before) {
  if (one.type === "radio") one.checked = one.value === before[one.name]; else one.value = before[one.name];
}
document.addEventListener("input", () => { keep(); show(); });
show();
