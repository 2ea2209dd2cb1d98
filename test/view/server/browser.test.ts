/** The pages as a browser shows them: keys, filters, narrow screens, live rows, and a run whose every field is an attack. */
import assert from "node:assert/strict";
import { appendFile, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { Page } from "playwright-core";
import { writeStatic } from "../../../view/server/index.ts";
import { scratchFolder } from "../../fakes/machine/scratch-folder.ts";
import { hostilePages, writeHostileRun } from "../../fakes/records/hostile-run.ts";
import { viewedRollout, writeViewedRun } from "../../fakes/records/viewed-run.ts";
import { openBrowser } from "../../fakes/view/browser.ts";
import { serveView, viewKey } from "../../fakes/view/served-view.ts";
import { need } from "../../needs.ts";

const scratch = scratchFolder("view-browser");

/** `said`: what the page's console told, such as what the content security policy refused; `asked`: every address that was asked for. */
async function openPage(t: TestContext, url: string, options: { width?: number; dark?: boolean; script?: boolean } = {}) {
  const browser = await openBrowser();
  t.after(() => browser.close());
  const { width = 1200, dark = false, script = true } = options;
  const context = await browser.newContext({
    viewport: { width, height: 800 },
    colorScheme: dark ? "dark" : "light",
    javaScriptEnabled: script,
  });
  const page = await context.newPage();
  const [said, asked]: [string[], string[]] = [[], []];
  page.on("console", (message) => void said.push(message.text()));
  page.on("pageerror", ({ message }) => void said.push(message));
  page.on("request", (request) => void asked.push(request.url()));
  page.on("dialog", (dialog) => void said.push(`dialog ${dialog.message()}`));
  await page.goto(`${url}/?key=${viewKey}`);
  return { page, said, asked };
}

const widthOf = (page: Page) => page.evaluate("document.documentElement.scrollWidth") as Promise<number>;

test("keys lead from the filtered list to its rollouts, their turns, tokens and group; nothing leaves loopback", {
  timeout: 300_000,
}, async (t) => {
  if (!(await need(t, "chromium"))) return;
  const folder = join(scratch, "keys");
  await writeViewedRun(folder);
  await using view = await serveView(folder);
  const { page, said, asked } = await openPage(t, view.url);
  await page.waitForSelector(".chart canvas");
  await page.keyboard.press("/");
  await page.fill('input[name="reward"]', "0");
  await page.keyboard.press("Enter");
  await page.waitForURL(/reward=0/);
  assert.equal(await page.locator("#rows tr").count(), 10);
  await page.locator("h2").first().click();
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.waitForURL(/rollout\?id=ses1&reward=0/);
  assert.match((await page.locator(".why").textContent()) ?? "", /2 of 3 required tests failed: test_above, test_edge/);
  await page.keyboard.press("j");
  await page.waitForURL(/rollout\?id=ses2&reward=0/);
  await page.keyboard.press("k");
  await page.waitForURL(/rollout\?id=ses1&reward=0/);
  await page.keyboard.press("n");
  await page.waitForURL(/id=ses1&turn=3/);
  await page.keyboard.press("t");
  await page.waitForURL(/tokens\?id=ses1&turn=3/);
  await page.locator(".run.sampled i").first().click();
  assert.match((await page.locator("#token").textContent()) ?? "", /id \d+ · logprob .* · trained · position \d+ · turn \d/);
  await page.locator("a.colour-mask").click();
  assert.equal(await page.locator("#tokens").getAttribute("data-colour"), "mask");
  await page.goBack();
  await page.keyboard.press("d");
  await page.waitForURL(/group\?task=clamp/);
  const keysOf = async (): Promise<string[]> => {
    await page.locator("button.keys").click();
    const shown = await page.locator("#keys tr:visible th").allTextContents();
    await page.keyboard.press("Escape");
    return shown;
  };
  assert.deepEqual(await keysOf(), ["j, k", "g", "r", "?"]);
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.waitForURL(/rollout\?id=ses1&task=clamp&group=clamp-g0/);
  assert.deepEqual(await keysOf(), ["j, k", "n, p", "t", "d", "u", "g", "r", "?"]);
  await page.keyboard.press("t");
  await page.waitForURL(/tokens\?id=ses1/);
  assert.deepEqual(await keysOf(), ["u", "g", "r", "?"]);
  await page.keyboard.press("u");
  await page.waitForURL(/rollout\?id=ses1/);
  await page.goto(`${view.url}/work?id=ses1`);
  await page.keyboard.press("u");
  await page.waitForURL(/rollout\?id=ses1/);
  await page.keyboard.press("u");
  await page.waitForURL(/\/$/);
  assert.deepEqual(await keysOf(), ["j, k", "g", "r", "/", "?"]);
  await page.keyboard.press("?");
  assert.ok(await page.locator("#keys").isVisible());
  assert.deepEqual(said, []);
  assert.deepEqual(
    asked.filter((address) => !address.startsWith(view.url)),
    [],
  );
});

test("each screen fits 400 pixels, in the dark too, and can be read without a script", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "chromium"))) return;
  const folder = join(scratch, "narrow");
  await writeViewedRun(folder);
  await using view = await serveView(folder);
  const screens = {
    "": "mean reward",
    tasks: "no variance",
    "rollout?id=ses3": "2 of 3 required",
    "tokens?id=ses3": "turn 1",
    "group?task=clamp&group=clamp-g0": "parts from",
  };
  for (const options of [{ width: 400 }, { width: 400, dark: true }, { script: false }]) {
    const { page, said } = await openPage(t, view.url, options);
    for (const [path, words] of Object.entries(screens)) {
      await page.goto(`${view.url}/${path}`);
      assert.ok((await widthOf(page)) <= (options.width ?? 1200), `${path} is ${await widthOf(page)} wide`);
      assert.ok((await page.locator("main").textContent())?.includes(words), path);
    }
    assert.deepEqual(said, []);
  }
});

test("the marks of turns are seen at any width, and an error's mark leads to the turn that shows the error", {
  timeout: 300_000,
}, async (t) => {
  if (!(await need(t, "chromium"))) return;
  const folder = join(scratch, "marks");
  await writeViewedRun(folder);
  await using view = await serveView(folder);
  for (const width of [1280, 400]) {
    const { page } = await openPage(t, view.url, { width });
    await page.goto(`${view.url}/rollout?id=ses3`);
    const turns = page.locator(".turns li", { has: page.locator(".marks span") });
    assert.deepEqual(await turns.locator(".marks").allTextContents(), ["●", "!", "●", "●"]);
    for (const turn of await turns.all()) {
      const [row, mark] = [await turn.boundingBox(), await turn.locator(".marks span").boundingBox()];
      assert.ok(row && mark && mark.x >= row.x && mark.x + mark.width <= row.x + Math.min(row.width, 60), JSON.stringify([row, mark]));
    }
    assert.match((await page.locator(".turns").textContent()) ?? "", /! an error · ● not trained/);
    await page.goto(`${view.url}/rollout?id=ses3&turn=1`);
    await page.locator(".turns li", { hasText: "!" }).locator("a").click();
    await page.waitForURL(/turn=3/);
    assert.match((await page.locator(".block.error").textContent()) ?? "", /edit failed: the text occurs twice/);
  }
});

test("further windows of tokens come as they are scrolled to, and earlier ones leave", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "chromium"))) return;
  const folder = join(scratch, "windows");
  await writeViewedRun(folder, [{ task_id: "long", rewards: [1] }], { turns: 30, words: 600 });
  await using view = await serveView(folder);
  const { page, said } = await openPage(t, view.url);
  await page.goto(`${view.url}/tokens?id=ses0&from=0`);
  for (let at = 0; at < 40 && (await page.locator(".end").count()) === 0; at++) {
    await page.evaluate("scrollTo(0, document.body.scrollHeight)");
    await page.waitForTimeout(100);
  }
  assert.equal(await page.locator(".end").count(), 1);
  assert.ok((await page.locator("#tokens > .window").count()) <= 5);
  assert.deepEqual(said, []);
});

test("a row of the open page changes when its rollout does", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "chromium"))) return;
  const folder = join(scratch, "live");
  await writeViewedRun(folder);
  await using view = await serveView(folder);
  const { page } = await openPage(t, view.url);
  await page.waitForTimeout(500);
  const { record } = viewedRollout({
    at: 17,
    task_id: "fetch",
    group_id: "fetch-g0",
    sample_index: 1,
    size: 4,
    reward: 0,
    turns: 4,
    words: 1,
    vocabulary: new Map(),
  });
  await appendFile(join(folder, "rollouts.jsonl"), `${JSON.stringify({ ...record, mask_reason: "judge_abstained" })}\n`);
  await page.locator('#rows tr[data-id="ses17"]', { hasText: "2 of 3 failed" }).waitFor({ timeout: 20_000 });
  assert.match((await page.locator(".live").textContent()) ?? "", /live · 20 rollouts · \d+ changes/);
});

test("a static folder can be read without a server: its links lead to files of its own, and its script runs", {
  timeout: 300_000,
}, async (t) => {
  const [folder, into] = [join(scratch, "shared-run"), join(scratch, "shared")];
  await writeViewedRun(folder);
  const { pages, bytes } = await writeStatic({ folder, into, only: "reward=0&task=clamp", announce: () => undefined });
  await assert.rejects(
    writeStatic({ folder, into, only: "rewrd=0", announce: () => undefined }),
    /--only is rewrd=…: name one of task, group, reward/,
  );
  const files = new Set(await readdir(into));
  assert.ok(pages === files.size - 1 && bytes > 10_000);
  for (const file of files)
    for (const [, href = ""] of file.endsWith(".html")
      ? (await readFile(join(into, file), "utf8")).matchAll(/(?:href|src)="([^"]*)"/g)
      : [])
      assert.ok(files.has(href) || href.startsWith("assets/") || href.startsWith("#low-"), `${file} leads to ${href}`);
  if (!(await need(t, "chromium"))) return;
  const browser = await openBrowser();
  t.after(() => browser.close());
  const page = await browser.newPage();
  const [said, asked]: [string[], string[]] = [[], []];
  page.on("console", (message) => void said.push(message.text()));
  page.on("request", (request) => void asked.push(request.url()));
  await page.goto(`file://${into}/index.html`);
  await page.waitForSelector(".chart canvas");
  await page.locator("#rows a").first().click();
  await page.waitForURL(/rollout-0\.html/);
  assert.match((await page.locator(".why").textContent()) ?? "", /2 of 3 required tests failed/);
  await page.keyboard.press("t");
  await page.waitForURL(/tokens-turn-2-0\.html/);
  assert.match((await page.locator("#tokens").textContent()) ?? "", /upper bound/);
  assert.deepEqual([said, asked.filter((address) => !address.startsWith("file://"))], [[], []]);
});

test("a run whose every field is an attack changes nothing: all of it is text, and pages stay small", { timeout: 300_000 }, async (t) => {
  const folder = join(scratch, "hostile");
  await writeHostileRun(folder);
  await using view = await serveView(folder);
  for (const path of hostilePages) {
    const text = await view.text(path);
    for (const raw of ["<script>", "<img src=x", 'href="javascript', "\u001b", "\u202e", "\u0000"]) assert.ok(!text.includes(raw), path);
    assert.ok(!/src="(?!assets\/|picture)|href="(?!#low-\d|assets\/|\.\/|tasks|group\?|rollout\?|tokens\?|work\?)[^"]/.test(text), path);
    assert.ok(text.length < 500_000, `${path}: ${text.length}`);
  }
  if (!(await need(t, "chromium"))) return;
  const { page, said, asked } = await openPage(t, view.url);
  for (const path of hostilePages) {
    await page.goto(`${view.url}/${path}`);
    assert.equal(await page.evaluate("globalThis.hacked"), undefined, path);
  }
  // A page that is not there answers 404, which the console tells.
  assert.deepEqual(
    said.filter((line) => !/404/.test(line)),
    [],
  );
  assert.deepEqual(
    asked.filter((address) => !address.startsWith(view.url)),
    [],
  );
});
