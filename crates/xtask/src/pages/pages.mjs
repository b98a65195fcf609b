// Opens all pages of the viewer; see pages.rs. The plan is the only argument.
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const plan = JSON.parse(process.argv[2]);
const modules = (name) => createRequire(`${plan.modules}/${name}/`);
const { chromium } = modules("playwright-core")("playwright-core");
const axe = readFileSync(modules("axe-core").resolve("axe-core/axe.min.js"), "utf8");
const faults = [];
const check = (holds, fault) => holds || faults.push(fault);

/** The names and hashes of all files of the notes. */
function notes() {
  const files = readdirSync(join(plan.store, "memory"), { recursive: true, withFileTypes: true });
  const paths = files.filter((file) => file.isFile() && file.name.endsWith(".md"));
  const hash = (path) => createHash("sha256").update(readFileSync(path)).digest("hex");
  return paths.map((file) => join(file.parentPath ?? file.path, file.name)).sort()
    .map((path) => `${path} ${hash(path)}`).join("\n");
}

const environment = { PATH: process.env.PATH, HOME: plan.home, LANG: "C.UTF-8" };
const viewer = spawn(plan.program, ["open", "--print"], { env: environment, cwd: plan.project });
process.on("exit", () => viewer.kill("SIGKILL"));
const ended = new Promise((resolve) => viewer.on("exit", resolve));
const address = await new Promise((resolve, reject) => {
  viewer.stdout.once("data", (bytes) => resolve(bytes.toString().trim()));
  viewer.once("exit", (code) => reject(new Error(`the viewer ended with ${code}`)));
});
const origin = new URL(address).origin;

const browser = await chromium.launch({
  executablePath: plan.browser,
  args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
});
const page = await browser.newPage();
let path = "the first address";
page.on("console", (message) =>
  ["error", "warning"].includes(message.type()) && faults.push(`${path}: ${message.text()}`));
page.on("pageerror", (error) => faults.push(`${path}: ${error.message}`));
page.on("request", (request) => {
  const url = request.url();
  check(url.startsWith(origin) || url.startsWith("data:"), `${path}: asked for ${url}`);
});

/** Opens a page, and returns the milliseconds until its first byte. */
async function open(to) {
  path = to;
  await page.goto(origin + to, { waitUntil: "domcontentloaded" });
  return page.evaluate(() => {
    const [timing] = performance.getEntriesByType("navigation");
    return timing.responseStart - timing.requestStart;
  });
}

await page.goto(address, { waitUntil: "domcontentloaded" });
await page.waitForURL((url) => !url.searchParams.has("token"));
await page.waitForSelector("nav a");
const links = await page.$$eval("nav a", (all) => all.map((a) => a.getAttribute("href")));
check(links.length > 1, `the navigation has ${links.length} pages`);
if (plan.note) links.push(`/note/${plan.note}`, `/note/${plan.note}/history`);
for (const link of links) {
  const times = [];
  for (const width of [1280, 390]) {
    for (const colorScheme of ["light", "dark"]) {
      await page.setViewportSize({ width, height: 900 });
      await page.emulateMedia({ colorScheme });
      times.push(await open(link));
      const name = link.slice(1).replaceAll("/", "-");
      await page.screenshot({ path: `${plan.shots}/${name}-${width}-${colorScheme}.png` });
      const isWide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
      check(!isWide, `${link} at ${width}: scrolls sideways`);
      check((await page.title()).endsWith("Anamnesis"), `${link}: ${await page.title()}`);
      await page.evaluate(`${axe}; undefined`);
      const { violations } = await page.evaluate(() => axe.run());
      for (const { impact, id, nodes } of violations) {
        const isSerious = ["serious", "critical"].includes(impact);
        check(!isSerious, `${link} at ${width}, ${colorScheme}: ${id}: ${nodes[0].html.slice(0, 200)}`);
      }
    }
  }
  await page.keyboard.press("Tab");
  const first = await page.evaluate(() => document.activeElement.textContent);
  check(first === "Skip to the content", `${link}: the first key reaches "${first}"`);
  console.log(`${link}: ${Math.min(...times).toFixed(0)} ms`);
}

if (plan.note) {
  const before = notes();
  await open(`/note/${plan.note}`);
  await page.getByRole("button", { name: "Pin", exact: true }).click();
  await page.waitForLoadState("domcontentloaded");
  check(notes() !== before, "Pin changed nothing");
  await page.getByRole("button", { name: "Undo", exact: true }).first().click();
  await page.waitForLoadState("domcontentloaded");
  check(notes() === before, "Undo did not restore every byte");

  await open("/notes");
  const search = page.getByRole("searchbox").first();
  await search.fill("staging");
  await page.waitForFunction(() => !document.body.innerText.includes("stub server"));
  check((await page.innerText("main")).includes("deploy-staging"), "the search does not find the note");
}

await browser.close();
const closed = Date.now();
const code = await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, 25_000, "late"))]);
check(code === 0, `25 s after its last page the viewer is ${code === "late" ? "running" : `ended with ${code}`}`);
if (code === "late") viewer.kill("SIGKILL");
console.log(`ended ${Math.round((Date.now() - closed) / 1000)} s after the browser`);
for (const fault of faults) console.error(fault);
process.exitCode = faults.length ? 1 : 0;
