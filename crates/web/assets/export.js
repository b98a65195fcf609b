// Search in an exported page.
"use strict";
const [field, project] = [document.querySelector("input"), document.querySelector("select")];
const notes = [...document.querySelectorAll("main details")];
const texts = [];
const status = document.querySelector("[role=status]");
function search() {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  notes.forEach((note, at) => {
    texts[at] ??= note.textContent.toLowerCase();
    const isOfProject = !project.value || note.dataset.project === project.value;
    const isFound = isOfProject && words.every((word) => texts[at].includes(word));
    if (note.hidden === isFound) note.hidden = !isFound;
    shown += isFound;
  });
  status.textContent = `${shown} of ${notes.length} notes`;
}
document.querySelector("form").hidden = false;
for (const input of [field, project]) input.addEventListener("input", search);
document.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
