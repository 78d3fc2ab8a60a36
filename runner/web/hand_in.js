// A run file may be dropped anywhere on the page. Without this script its field does the same.
"use strict";
const field = document.querySelector("#file");
const hint = document.createElement("p");
hint.className = "drop";
hint.setAttribute("role", "status");
hint.textContent = "Or drop a file anywhere on this page.";
field.after(hint);

const holdsFiles = (event) => [...event.dataTransfer.types].includes("Files");

const shown = (size) => (size < 1e6 ? `${Math.ceil(size / 1e3)} kB` : `${(size / 1e6).toFixed(1)} MB`);

field.addEventListener("change", () => {
  const [file] = field.files;
  hint.textContent = file ? `${file.name}, ${shown(file.size)}` : "Or drop a file anywhere on this page.";
});

for (const name of ["dragenter", "dragover"]) {
  addEventListener(name, (event) => {
    if (!holdsFiles(event)) return;
    event.preventDefault();
    event.dataTransfer.dropEffect = "copy";
    hint.classList.add("over");
  });
}

addEventListener("dragleave", (event) => {
  if (event.relatedTarget === null) hint.classList.remove("over");
});

addEventListener("drop", (event) => {
  if (!holdsFiles(event)) return;
  event.preventDefault();
  hint.classList.remove("over");
  if (event.dataTransfer.files.length !== 1) {
    hint.textContent = "One file at a time, please.";
    return;
  }
  field.files = event.dataTransfer.files;
  field.dispatchEvent(new Event("change"));
  document.querySelector("#software").focus();
});
