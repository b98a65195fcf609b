// Search in an exported page.
"use strict";
const byId = (id) => document.getElementById(id);
const [field, project] = [document.querySelector("input"), document.querySelector("select")];
const [list, more, status] = [byId("notes"), byId("more"), document.querySelector("[role=status]")];
const notes = JSON.parse(byId("list").textContent);
const PAGE = 100;
const ENTITIES = { "&lt;": "<", "&gt;": ">", "&quot;": '"', "&amp;": "&" };
const texts = [];
let found = [];

// The text of a note, in lower case.
function text(at) {
  return (texts[at] ??= notes[at][1].replace(/<[^>]*>/g, " ")
    .replace(/&(lt|gt|quot|amp);/g, (name) => ENTITIES[name]).toLowerCase());
}

// The HTML of a note was made by `anamnesis export`: the note's own text is escaped in it.
function showMore() {
  const from = list.childElementCount;
  const html = found.slice(from, from + PAGE).map((at) => notes[at][1]);
  list.insertAdjacentHTML("beforeend", html.join(""));
  more.hidden = from + PAGE >= found.length;
}

function search() {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  found = [...notes.keys()].filter(
    (at) =>
      (!project.value || notes[at][0] === project.value) &&
      words.every((word) => text(at).includes(word)),
  );
  list.replaceChildren();
  showMore();
  status.textContent = `${found.length} of ${notes.length} notes`;
}

document.querySelector("form").hidden = false;
for (const input of [field, project]) input.addEventListener("input", search);
document.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
more.addEventListener("click", showMore);
search();
