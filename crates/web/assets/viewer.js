// Live updates, search as you type, keys. Every page works without this file.
"use strict";

// Fetches a page, or sends a form and reads the page that answers.
async function load(address, form) {
  const init = { headers: { accept: "text/html" } };
  if (form) {
    init.method = "POST";
    init.headers["content-type"] = "application/x-www-form-urlencoded";
    init.body = new URLSearchParams(new FormData(form)).toString();
  }
  const answer = await fetch(address, init);
  if (!answer.ok) throw new Error(answer.status);
  return new DOMParser().parseFromString(await answer.text(), "text/html");
}

// Returns whether the person has begun something in a part of the page.
function isBusy(part) {
  const field = document.activeElement;
  const isTyping = part.contains(field) && field.matches("input:not([type=checkbox]), textarea, select");
  return isTyping || part.querySelector("input[type=checkbox]:checked") !== null;
}

// Replaces parts of the page by those of an address, as it is now.
async function refresh(ids, address = location.href, isAsked = false) {
  const page = await load(address);
  for (const id of ids) {
    const [now, next] = [document.getElementById(id), page.getElementById(id)];
    if (!now || !next || now.innerHTML === next.innerHTML) continue;
    if (!isAsked && isBusy(now)) continue;
    const open = [...now.querySelectorAll("details")].map((details) => details.open);
    const focused = document.activeElement?.getAttribute("href");
    now.replaceWith(next);
    next.querySelectorAll("details").forEach((details, at) => (details.open = open[at] ?? false));
    if (focused) next.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus();
  }
}

// Every address is below this folder.
const base = `/${location.pathname.split("/")[1]}`;

// One page of all tabs holds the event stream, because browsers open six connections at most.
const channel = new BroadcastChannel("anamnesis");
let waiting = 0;
function changed(what) {
  const parts = document.querySelectorAll(`[data-live~="${what}"]`);
  const ids = [...parts].map((part) => part.id);
  clearTimeout(waiting);
  if (ids.length) waiting = setTimeout(() => refresh(ids).catch(() => {}), 50);
}
channel.onmessage = (message) => changed(message.data);
navigator.locks.request("anamnesis-events", () => new Promise(() => {
  const events = new EventSource(`${base}/events`);
  for (const what of ["journal", "notes"]) {
    events.addEventListener(what, () => {
      changed(what);
      channel.postMessage(what);
    });
  }
  events.onerror = () => document.body.classList.add("offline");
  events.onopen = () => document.body.classList.remove("offline");
}));

// Search as you type. The last word may be unfinished, so its beginning counts, in scripts with
// spaces between words.
const unfinished = /[\p{sc=Latin}\p{sc=Cyrillic}\p{sc=Greek}0-9]$/u;
const asTyped = (words) => (unfinished.test(words) && !words.includes('"') ? `${words}*` : words);
for (const form of document.querySelectorAll("form[data-search]")) {
  let typing = 0;
  const search = (isTyping) => {
    const query = new URLSearchParams(new FormData(form));
    for (const [name, value] of [...query]) if (!value) query.delete(name);
    const address = `${form.getAttribute("action")}?${query}`;
    history.replaceState(null, "", address);
    const words = query.get("q") ?? "";
    if (isTyping && words) query.set("q", asTyped(words));
    const asked = `${form.getAttribute("action")}?${query}`;
    refresh([form.dataset.search], asked, true).catch(() => {});
  };
  form.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(search, 80, true);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    clearTimeout(typing);
    search(false);
  });
}

// The preview of an edited note, as it is typed.
for (const form of document.querySelectorAll("form[data-preview]")) {
  const place = form.querySelector(".preview");
  let typing = 0;
  const show = async () => {
    const page = await load(form.dataset.preview, form);
    const next = page.getElementById(place.id);
    if (next) place.replaceChildren(...next.childNodes);
  };
  form.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(() => show().catch(() => {}), 250);
  });
  form.querySelector("[formaction]").addEventListener("click", (event) => {
    event.preventDefault();
    show().catch(() => {});
  });
}

// The palette: Ctrl-K goes to a page or a note.
const palette = document.getElementById("palette");
if (palette) {
  const [field, list, status] = ["input", "ul", "[role=status]"].map((part) => palette.querySelector(part));
  const pages = [...document.querySelectorAll("header nav a")];
  let typing = 0;
  const put = (links) => list.replaceChildren(...links.map(([href, text, project]) => {
    const [item, link] = [document.createElement("li"), document.createElement("a")];
    link.href = href;
    link.textContent = text;
    if (project) {
      const hint = document.createElement("span");
      hint.className = "hint";
      hint.textContent = project;
      link.append(" ", hint);
    }
    item.append(link);
    return item;
  }));
  const look = async () => {
    const words = field.value.trim().toLowerCase();
    const named = pages.filter((page) => page.textContent.toLowerCase().includes(words));
    const links = named.map((page) => [page.getAttribute("href"), page.textContent]);
    put(links);
    status.textContent = "";
    if (!words) return;
    const found = await load(`${base}/notes?${new URLSearchParams({ q: asTyped(field.value.trim()) })}`);
    // A title with a word that begins like this comes first.
    const begins = (note) => ` ${note.textContent.toLowerCase()}`.includes(` ${words}`);
    const titles = [...found.querySelectorAll("#results a.title")];
    const notes = [...titles.filter(begins), ...titles.filter((note) => !begins(note))].slice(0, 8);
    if (field.value.trim().toLowerCase() !== words) return;
    const projectOf = (note) => note.parentElement.querySelector(".facts bdi")?.textContent;
    put([...links, ...notes.map((note) => [note.getAttribute("href"), note.textContent, projectOf(note)])]);
    if (!links.length && !notes.length) status.textContent = "Nothing found.";
  };
  field.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(() => look().catch(() => {}), 80);
  });
  palette.addEventListener("keydown", (event) => {
    const links = [...list.querySelectorAll("a")];
    const at = links.indexOf(document.activeElement);
    if (event.key === "Enter" && at < 0) links[0]?.click();
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    event.preventDefault();
    const next = at + (event.key === "ArrowDown" ? 1 : -1);
    (links[next] ?? field).focus();
  });
  const open = (event) => {
    event.preventDefault();
    field.value = "";
    look().catch(() => {});
    if (!palette.open) palette.showModal();
  };
  document.addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey)) open(event);
  });
  document.querySelector("header .find").addEventListener("click", open);
}

// Keys: `data-key` names the key of a field, button or link; j and k go through lists, and x
// selects a note.
document.addEventListener("keydown", (event) => {
  const field = event.target.closest?.("input, textarea, select");
  if (event.key === "Escape" && field) return field.blur();
  if (field || event.ctrlKey || event.metaKey || event.altKey) return;
  const named = document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
  if (named) {
    event.preventDefault();
    return named.matches("input, textarea, select") ? named.focus() : named.click();
  }
  if (event.key === "x") {
    const box = document.activeElement.closest("li")?.querySelector("input[name=note]");
    return box?.click();
  }
  if (event.key !== "j" && event.key !== "k") return;
  const titles = [...document.querySelectorAll("main a.title")];
  const at = titles.indexOf(document.activeElement);
  const next = event.key === "j" ? at + 1 : Math.max(at, 1) - 1;
  titles[Math.min(next, titles.length - 1)]?.focus();
});
