/** Checks the service that shows a page of MiniWoB++, with a small page instead of the package's. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFile, mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { scratchFolder } from "../../../fakes/machine/scratch-folder.ts";
import { need } from "../../../needs.ts";

const scratch = scratchFolder("miniwob-service");
const files = join(import.meta.dirname, "../../../../tasks/tool-sets/miniwob/service");

test("the first end that the page itself tells is the one that counts, before any discount for time", async (t) => {
  const service = await served(t, "click-test");
  if (service === null) return;
  assert.deepEqual(await service.graded(), { ended: false, raw: null, solved: false });
  assert.deepEqual(await service.ended(-1), 200);
  assert.deepEqual(await service.ended(1), 200);
  assert.deepEqual(await service.graded(), { ended: true, raw: -1, solved: false });
});

test("all of the right answer is asked for, and near enough where a page tells how near", async (t) => {
  const rewards = { "click-test": [1, 0.9, null], "circle-center": [1, 0.9, 0.7] };
  for (const [page, raws] of Object.entries(rewards))
    for (const [index, raw] of raws.entries()) {
      const service = await served(t, page);
      if (service === null) return;
      await service.ended(raw);
      const solved = index === 0 || (index === 1 && page === "circle-center");
      assert.deepEqual(await service.graded(), { ended: true, raw, solved }, `${page} ${raw}`);
    }
});

test("what has not the page's word tells no end: a form, a script from elsewhere, a guess", async (t) => {
  const service = await served(t, "click-test");
  if (service === null) return;
  const send = async (headers: Record<string, string>, body: string) =>
    (await fetch(`${service.url}/ended`, { method: "POST", headers, body })).status;
  assert.equal(await send({ "content-type": "application/json" }, '{"raw":1}'), 404);
  assert.equal(await send({ "content-type": "application/x-www-form-urlencoded" }, "raw=1"), 404);
  assert.equal(await send({ "x-word": "null" }, '{"raw":1}'), 404);
  assert.equal(await send({ "x-word": await service.word() }, "x".repeat(2_000)), 413);
  assert.deepEqual(await service.graded(), { ended: false, raw: null, solved: false });
});

test("no page but the task's is shown, with no other seed and nothing in its address, and no other file of the service", async (t) => {
  const service = await served(t, "click-test");
  if (service === null) return;
  const status = async (path: string) => (await fetch(service.url + path)).status;
  assert.equal(await status("/3/miniwob/click-test.html"), 200);
  for (const path of [
    "/4/miniwob/click-test.html",
    "/3/miniwob/circle-center.html",
    "/3/core/%2e%2e/miniwob/circle-center.html",
    "/3/miniwob/click-test.html?mode=test",
    "/3/core/%2e%2e/%2e%2e/%2e%2e/%2e%2e/serve.py",
    "/3/core/..%2f..%2f..%2f..%2fsolve.js",
    "/solve.js",
    "/",
  ])
    assert.equal(await status(path), 404, path);
});

test("scripts of the page run, and none that is typed into it", async (t) => {
  const service = await served(t, "click-test");
  if (service === null) return;
  const page = await fetch(`${service.url}/3/miniwob/click-test.html`);
  const policy = page.headers.get("content-security-policy") ?? "";
  const [, nonce] = /script-src 'nonce-([\w-]+)';/.exec(policy) ?? assert.fail(policy);
  const scripts = [...(await page.text()).matchAll(/<script\b[^>]*>/g)].map(([tag]) => tag);
  assert.equal(scripts.length, 2);
  for (const tag of scripts) assert.ok(tag.includes(`nonce="${nonce}"`), tag);
  const again = await fetch(`${service.url}/3/miniwob/click-test.html`);
  assert.ok(!again.headers.get("content-security-policy")?.includes(nonce ?? ""), "another nonce each time");
});

let count = 0;

/** null: no Python. */
async function served(t: TestContext, page: string) {
  if (!(await need(t, "python"))) return null;
  const folder = join(scratch, String(count++));
  await writeSite(folder);
  const child = spawn("python3", ["-s", join(folder, "serve.py"), page, "3", "0"], { stdio: ["ignore", "pipe", "inherit"] });
  t.after(() => child.kill());
  const [port] = await once(child.stdout, "data");
  const url = `http://127.0.0.1:${String(port).trim()}`;
  const word = async () =>
    /var word = "([\w-]+)";/.exec(await (await fetch(`${url}/3/core/core.js`)).text())?.[1] ?? assert.fail("no word");
  return {
    url,
    word,
    graded: async () => (await fetch(`${url}/graded`, { method: "POST", body: '{"answers":[]}' })).json(),
    ended: async (raw: number | null) =>
      (await fetch(`${url}/ended`, { method: "POST", headers: { "x-word": await word() }, body: JSON.stringify({ raw }) })).status,
  };
}

async function writeSite(folder: string): Promise<void> {
  const html = join(folder, "site/miniwob/html");
  for (const part of ["core", "miniwob"]) await mkdir(join(html, part), { recursive: true });
  for (const name of await readdir(files)) if (/\.(py|js)$/.test(name)) await copyFile(join(files, name), join(folder, name));
  await writeFile(join(html, "core/core.js"), "var core = {};\n");
  const page = '<!doctype html><script src="../core/core.js"></script>\n<script>\nvar genProblem;\n</script>\n';
  for (const name of ["click-test", "circle-center"]) await writeFile(join(html, `miniwob/${name}.html`), page);
}
