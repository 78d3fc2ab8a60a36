"use strict";
// Buttons that copy: the text that they hold. Without this script, or where copying is not allowed, the text stands beside them.
document.addEventListener("click", async event => {
  const button = event.target.closest("button[data-copies]");
  if (button === null) return;
  const words = button.textContent;
  try {
    await navigator.clipboard.writeText(button.dataset.copies);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Not allowed here";
  }
  setTimeout(() => { button.textContent = words; }, 2000);
});

// Dates of a task also where the reader is.
const here = () => {
  for (const cell of document.querySelectorAll("td.here[data-at]"))
    cell.textContent = new Date(cell.dataset.at).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
  for (const cell of document.querySelectorAll(".here")) cell.hidden = false;
};
document.addEventListener("changed", here);
here();
