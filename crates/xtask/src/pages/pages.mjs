// Opens all pages of the viewer; see pages.rs. The plan is the only argument.
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const plan = JSON.parse(process.argv[2]);
const modules = (name) => createRequire(`${plan.modules}/${name}/`);
const { chromium } = modules("playwright-core")("playwright-core");
const axe = readFileSync(modules("axe-core").resolve("axe-core/axe.min.js"), "utf8");
const faults = [];
const check = (holds, fault) => holds || faults.push(fault);

/** The names and hashes of all files of the notes, also of forgotten ones. */
function notes() {
  const folders = ["memory", "local", "trash"].map((name) => join(plan.store, name)).filter(existsSync);
  const files = folders.flatMap((name) => readdirSync(name, { recursive: true, withFileTypes: true }));
  const paths = files.filter((file) => file.isFile() && file.name.endsWith(".md"));
  const hash = (path) => createHash("sha256").update(readFileSync(path)).digest("hex");
  return paths.map((file) => join(file.parentPath ?? file.path, file.name)).sort()
    .map((path) => `${path} ${hash(path)}`).join("\n");
}

/** Whether a process is a viewer of this store. */
function isViewer(pid) {
  try {
    const [program, word] = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
    return program === plan.program && word === "open" && readFileSync(`/proc/${pid}/environ`, "utf8").includes(`HOME=${plan.home}\0`);
  } catch {
    return false; // It ended meanwhile.
  }
}

const environment = { PATH: process.env.PATH, HOME: plan.home, LANG: "C.UTF-8" };
const started = Date.now();
const viewer = spawn(plan.program, ["open", "--print"], { env: environment, cwd: plan.project });
process.on("exit", () => viewer.kill("SIGKILL"));
const ended = new Promise((resolve) => viewer.on("exit", resolve));
const address = await new Promise((resolve, reject) => {
  viewer.stdout.once("data", (bytes) => resolve(bytes.toString().trim()));
  viewer.once("exit", (code) => reject(new Error(`the viewer ended with ${code}`)));
});
console.log(`address: ${Date.now() - started} ms after the start`);
const origin = new URL(address).origin;
// All pages are below a random folder.
const base = `/${new URL(address).pathname.split("/")[1]}`;

// A server, because only that tells the process, which is killed in the end.
const program = await chromium.launchServer({
  executablePath: plan.browser,
  args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
});
const browser = await chromium.connect(program.wsEndpoint());
let path = "the first address";

/** Opens an empty page, whose faults are noted. */
async function watched(context) {
  const page = await context.newPage();
  page.on("console", (message) =>
    ["error", "warning"].includes(message.type()) && faults.push(`${path}: ${message.text()}`));
  page.on("pageerror", (error) => faults.push(`${path}: ${error.message}`));
  page.on("request", (request) => {
    const url = request.url();
    check(url.startsWith(origin) || url.startsWith("data:"), `${path}: asked for ${url}`);
  });
  return page;
}
const desktop = await watched(browser);
let page = desktop;

/** Opens a page, and returns the milliseconds until its first byte. */
async function open(to) {
  path = to;
  await page.goto(origin + (to.startsWith(base) ? to : base + to), { waitUntil: "domcontentloaded" });
  return page.evaluate(() => {
    const [timing] = performance.getEntriesByType("navigation");
    return timing.responseStart - timing.requestStart;
  });
}

/** Opens a page and returns the address of the first link that a selector finds. */
async function linkOn(to, selector) {
  await open(to);
  const found = page.locator(selector).first();
  return await found.count() ? found.getAttribute("href") : null;
}

/** Clicks a button by its name, and the button that confirms on the next page, if there is one. */
async function press(name, confirm) {
  await page.getByRole("button", { name, exact: true }).first().click();
  await page.waitForLoadState("domcontentloaded");
  const sure = confirm && page.getByRole("button", { name: confirm, exact: true });
  if (!sure || !await sure.count()) return;
  await sure.click();
  await page.waitForLoadState("domcontentloaded");
}

/** Undoes the last change from its toast, and checks every byte. */
async function undo(what, before) {
  check(notes() !== before, `${what} changed nothing`);
  await press("Undo", "Undo it");
  check(notes() === before, `Undo of ${what} did not restore every byte`);
}

/** Ticks two notes, fills the field of an action and presses its button. */
async function many(button, field, value) {
  await open("/notes");
  const boxes = page.locator("#results input[name=note]");
  await boxes.nth(0).check();
  await boxes.nth(1).check();
  if (field) {
    await page.getByText("Tag or move").click();
    await page.locator(".toolbar").getByLabel(field, { exact: true }).fill(value);
  }
  await press(button);
}

await page.goto(address, { waitUntil: "domcontentloaded" });
await page.waitForURL((url) => !url.searchParams.has("token"));
await page.waitForSelector("header nav a");
const storageState = await page.context().storageState();
const phone = await watched(await browser.newContext({ storageState, hasTouch: true, isMobile: true }));
const links = await page.$$eval("header nav a", (all) => all.map((a) => a.getAttribute("href")));
check(links.length === 12, `the navigation has ${links.length} pages`);
if (plan.note) {
  links.push(`/note/${plan.note}`, `/note/${plan.note}/history`, `/note/${plan.note}/link`, `/map/${plan.note}`, "/notes/new",
    "/notes?since=today");
  for (const [to, selector] of [["/sessions", "#sessions a.title"], ["/why", "#injected li a.title"],
    ["/history", "#changes a.title"]]) {
    const link = await linkOn(to, selector);
    check(link, `${to} lists nothing`);
    if (link) links.push(link);
  }
  links.push(`/note/${plan.forgotten}?forgotten`);
}
for (const link of links) {
  const times = [];
  for (const width of [1920, 1280, 390]) {
    page = width === 390 ? phone : desktop;
    for (const colorScheme of ["light", "dark"]) {
      await page.setViewportSize({ width, height: 900 });
      await page.emulateMedia({ colorScheme });
      times.push(await open(link));
      const hasKeys = await page.locator("kbd:visible, .keys:visible").count() > 0;
      check(!hasKeys || page === desktop, `${link}: hints at keys on a phone`);
      const name = link.replace(base, "").slice(1).replace(/[0-9A-Za-z]{26,}|\d{10,}/g, "one").replace(/[^\w-]+/g, "-");
      const height = await page.evaluate(() => document.documentElement.scrollHeight);
      // A screenshot of more than the window would end the emulation of a phone.
      await page.setViewportSize({ width, height: Math.min(height, 2400) });
      await page.screenshot({ path: `${plan.shots}/${name}-${width}-${colorScheme}.png` });
      const isWide = await page.evaluate(() => document.documentElement.scrollWidth) > width;
      check(!isWide, `${link} at ${width}: scrolls sideways`);
      check(/. · Anamnesis$/.test(await page.title()), `${link}: the title is "${await page.title()}"`);
      check(await page.locator("h1").first().innerText(), `${link}: the heading is empty`);
      await page.evaluate(`${axe}; undefined`);
      const { violations } = await page.evaluate(() => axe.run());
      for (const { impact, id, nodes } of violations) {
        const isSerious = ["serious", "critical"].includes(impact);
        check(!isSerious, `${link} at ${width}, ${colorScheme}: ${id}: ${nodes[0].html.slice(0, 200)}`);
      }
    }
  }
  page = desktop;
  await page.keyboard.press("Tab");
  const first = await page.evaluate(() => document.activeElement.textContent);
  check(first === "Skip to the content", `${link}: the first key reaches "${first}"`);
  console.log(`${link}: ${Math.min(...times).toFixed(0)} ms`);
}
await phone.close();

if (plan.note) {
  const before = notes();
  await open(`/note/${plan.note}`);
  await press("Pin");
  await undo("Pin", before);
  await page.keyboard.press("e");
  const title = page.getByLabel("Title", { exact: true }).first();
  await title.fill("A new <b>title</b>");
  await page.waitForFunction(() => document.querySelector(".preview")?.innerText.includes("A new <b>title</b>"));
  check(notes() === before, "the preview changed a note");
  await press("Save");
  await undo("Save", before);
  await press("Forget");
  await undo("Forget", before);

  await press("Forget");
  const forgotten = notes();
  await press("Restore");
  await undo("Restore", forgotten);
  await press("Restore");
  check(notes() === before, "Restore did not restore every byte");

  await open("/notes");
  await page.keyboard.press("n");
  await page.waitForURL((url) => url.pathname === `${base}/notes/new`);
  const warning = page.getByLabel("Warn at", { exact: false });
  check(!await warning.isVisible(), "a fact has the fields of a warning");
  await page.locator("select[name=kind]").selectOption("warning");
  check(await warning.isVisible(), "a warning has no fields of its own");
  await page.getByLabel("Title", { exact: true }).fill("Never deploy on a Friday");
  await page.getByLabel("Text (Markdown)").fill("Nobody is there to repair it.");
  await warning.fill("cmd: make deploy-staging");
  await press("Save");
  check((await page.locator("#results").innerText()).includes("Never deploy on a Friday"), "the new note is not listed");
  await undo("a new note", before);

  await open("/notes");
  check(!await page.getByRole("button", { name: "Mute", exact: true }).isVisible(), "the bar shows without a selection");
  await many("Mute");
  await undo("Mute of two notes", before);
  await many("Move there", "Project", "elsewhere");
  await undo("a move of two notes", before);
  await many("Add the tag", "Tag", "looked-at");
  const tagged = notes();
  check(tagged !== before, "two notes were not tagged");
  await many("Remove the tag", "Tag", "looked-at");
  await undo("the removal of a tag", tagged);
  await many("Remove the tag", "Tag", "looked-at");
  const untagged = notes();
  await many("Add the tag", "Tag", "looked-at");
  await undo("a new tag", untagged);

  for (const key of ["ArrowRight", "ArrowLeft"]) {
    await open("/review");
    const pending = notes();
    await page.keyboard.press(key);
    await page.waitForURL((url) => url.searchParams.has("done"));
    await undo(`${key} in the review`, pending);
  }

  const unlinked = notes();
  await open(`/note/${plan.note}`);
  await page.getByRole("link", { name: "Link to another note" }).click();
  await page.getByLabel("Find the other note").fill("staging");
  await page.keyboard.press("Enter");
  await page.waitForURL((url) => url.searchParams.get("q") === "staging");
  await page.locator("select[name=relation]").selectOption("caused-by");
  await press("Link");
  await undo("Link", unlinked);
  await press("Undo");
  const linked = notes();
  check(linked !== unlinked, "the undo of an undo did not link again");
  await press("Remove");
  await undo("Remove of a link", linked);

  await open("/notes");

  await page.keyboard.press("/");
  await page.keyboard.type("staging");
  const isFound = () => document.querySelector("#results").innerText.includes("deploy-staging");
  await page.waitForFunction(isFound, undefined, { timeout: 5_000 })
    .catch(() => check(false, "the search does not find the note"));

  await page.keyboard.press("Escape");
  await page.keyboard.press("Control+k");
  await page.keyboard.type("sup");
  const palette = page.locator("#palette");
  await palette.getByRole("link", { name: "Supabase" }).waitFor({ timeout: 5_000 })
    .catch(() => check(false, "Ctrl-K does not find a note by the beginning of a word"));
  await palette.getByRole("searchbox").fill("xyzzyq");
  await palette.getByText("Nothing found").waitFor({ timeout: 5_000 })
    .catch(() => check(false, "Ctrl-K does not say that nothing is found"));
  await palette.getByRole("searchbox").fill("healt");
  await page.waitForFunction(() => document.querySelectorAll("#palette li").length === 1);
  await page.keyboard.press("Enter");
  await page.waitForURL((url) => url.pathname === `${base}/health`);
}

for (const query of plan.searches) {
  const took = await open(`/notes?${new URLSearchParams({ q: query })}`);
  console.log(`search "${query}": ${took.toFixed(0)} ms`);
}
const status = `/proc/${viewer.pid}/status`;
if (existsSync(status)) console.log(`memory: ${readFileSync(status, "utf8").match(/VmHWM:\s*(.*)/)[1]} at most`);

// The browser of an empty store is killed while a page is open.
if (plan.note) await browser.close();
else process.kill(-program.process().pid, "SIGKILL");
const closed = Date.now();
const code = await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, 25_000, "late"))]);
check(code === 0, `25 s after its last page the viewer is ${code === "late" ? "running" : `ended with ${code}`}`);
if (code === "late") viewer.kill("SIGKILL");
console.log(`ended ${Math.round((Date.now() - closed) / 1000)} s after the browser`);
const port = Number(new URL(origin).port).toString(16).toUpperCase().padStart(4, "0");
const listens = readFileSync("/proc/net/tcp", "utf8").split("\n").some((line) => line.includes(`:${port} 00000000:0000 0A`));
check(!listens, "its port is still open");
const left = readdirSync("/proc").filter((name) => /^\d+$/.test(name) && isViewer(name));
check(!left.length, `processes of the viewer are left: ${left}`);
await program.kill();
for (const fault of faults) console.error(fault);
process.exitCode = faults.length ? 1 : 0;
