// Live updates, search as you type, keys. Every page works without this file.
"use strict";

// Replaces parts of the page by those of the same address, as it is now.
async function refresh(ids, address = location.href) {
  const answer = await fetch(address, { headers: { accept: "text/html" } });
  if (!answer.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const id of ids) {
    const [now, next] = [document.getElementById(id), page.getElementById(id)];
    if (!now || !next || now.innerHTML === next.innerHTML) continue;
    const open = [...now.querySelectorAll("details")].map((details) => details.open);
    const focused = document.activeElement?.getAttribute("href");
    now.replaceWith(next);
    next.querySelectorAll("details").forEach((details, at) => (details.open = open[at] ?? false));
    if (focused) next.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus();
  }
}

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
  const events = new EventSource("/events");
  for (const what of ["journal", "notes"]) {
    events.addEventListener(what, () => {
      changed(what);
      channel.postMessage(what);
    });
  }
  events.onerror = () => document.body.classList.add("offline");
  events.onopen = () => document.body.classList.remove("offline");
}));

// Search as you type.
for (const form of document.querySelectorAll("form[data-search]")) {
  let typing = 0;
  const search = () => {
    const query = new URLSearchParams(new FormData(form));
    for (const [name, value] of [...query]) if (!value) query.delete(name);
    const address = `${form.getAttribute("action")}?${query}`;
    history.replaceState(null, "", address);
    refresh([form.dataset.search], address).catch(() => {});
  };
  form.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(search, 80);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    search();
  });
}

// Keys: `data-key` names the key of a field, button or link; j and k go through lists.
document.addEventListener("keydown", (event) => {
  const field = event.target.closest?.("input, textarea, select");
  if (event.key === "Escape" && field) return field.blur();
  if (field || event.ctrlKey || event.metaKey || event.altKey) return;
  const named = document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
  if (named) {
    event.preventDefault();
    return named.matches("input, textarea, select") ? named.focus() : named.click();
  }
  if (event.key !== "j" && event.key !== "k") return;
  const titles = [...document.querySelectorAll("main a.title")];
  const at = titles.indexOf(document.activeElement);
  const next = event.key === "j" ? at + 1 : Math.max(at, 1) - 1;
  titles[Math.min(next, titles.length - 1)]?.focus();
});
