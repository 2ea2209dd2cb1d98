import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { type TestContext, test } from "node:test";

const root = join(import.meta.dirname, "..");

test("nothing is installed when everything is there, however young the files are", async (t) => {
  const clone = await fakeClone(t);
  assert.match((await clone.bootstrap()).output, /installed in/);
  assert.equal((await clone.bootstrap()).output, "");
  await clone.write("package.json", { ...clone.manifest, scripts: { extra: "true" } });
  assert.equal((await clone.bootstrap()).output, "", "a script is no dependency");
  assert.equal(await clone.installs(), 1);
});

test("a changed version is installed", async (t) => {
  const clone = await fakeClone(t);
  await clone.bootstrap();
  await clone.write("package.json", { ...clone.manifest, dependencies: { left: "2.0.0" } });
  await clone.write("package-lock.json", lockOf("2.0.0"));
  await clone.bootstrap();
  assert.equal(await clone.installs(), 2);
});

test("an install that fails ends in one sentence and a failure", async (t) => {
  const clone = await fakeClone(t, "process.exit(3)");
  const { code, output } = await clone.bootstrap();
  assert.equal(code, 1);
  assert.match(output, /npm install did not work \(it ended with exit code 3\)\. .+\n$/);
});

function lockOf(version: string) {
  return { packages: { "": { dependencies: { left: version } }, "node_modules/left": { version } } };
}

/** A folder with the real script and an npm of our own, which counts its calls and leaves npm's marker. */
async function fakeClone(t: TestContext, npm?: string) {
  const folder = await mkdtemp(join(tmpdir(), "alidade-clone-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const manifest = { type: "module", dependencies: { left: "1.0.0" } };
  const write = async (name: string, content: object) => {
    // Younger than the install by more than the clock's grain.
    await new Promise((resolve) => setTimeout(resolve, 20));
    await writeFile(join(folder, name), JSON.stringify(content));
  };
  await mkdir(join(folder, "bin"));
  await mkdir(join(folder, "npm"));
  await cp(join(root, "bin/bootstrap.mjs"), join(folder, "bin/bootstrap.mjs"));
  await write("package.json", manifest);
  await write("package-lock.json", lockOf("1.0.0"));
  const install = `const fs = require("node:fs");
    fs.appendFileSync("calls", "x");
    fs.mkdirSync("node_modules", { recursive: true });
    fs.copyFileSync("package-lock.json", "node_modules/.package-lock.json");`;
  await writeFile(join(folder, "npm/npm-cli.cjs"), npm ?? install);
  return {
    manifest,
    write,
    installs: async () => (await readFile(join(folder, "calls"), "utf8")).length,
    bootstrap: () =>
      new Promise<{ code: number; output: string }>((resolve) => {
        const env = { PATH: [dirname(process.execPath), process.env.PATH].join(delimiter), npm_execpath: join(folder, "npm/npm-cli.cjs") };
        execFile(process.execPath, [join(folder, "bin/bootstrap.mjs")], { env }, (error, stdout, stderr) => {
          resolve({ code: error === null ? 0 : Number(error.code), output: stdout + stderr });
        });
      }),
  };
}
