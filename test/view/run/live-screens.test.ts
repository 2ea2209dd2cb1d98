/** The screen of a running rollout, from the control listener of its process to the page of the view. */
import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { scratchFolder } from "../../fakes/machine/scratch-folder.ts";
import { controlToken, enginesAt } from "../../fakes/proxies/engines-at.ts";
import { LogBuilder, user } from "../../fakes/records/log-builder.ts";
import { pngOf } from "../../fakes/records/png.ts";
import { viewedRollout } from "../../fakes/records/viewed-run.ts";
import { serveView } from "../../fakes/view/served-view.ts";

const scratch = scratchFolder("live-screens");
const png = pngOf(8, 6);

test("the page of a running rollout shows its screen, and shows none without the run's process", async () => {
  await using at = await enginesAt(() => ({ text: "ok" }), { a: {} });
  const { session } = await at.proxy.openSession({ rollout_id: "roll0" });
  session.screen = { frame: async () => png };
  const { record } = viewedRollout({
    ...{ at: 0, task_id: "desk", group_id: "g", sample_index: 0, size: 1, reward: 0, turns: 2, words: 1 },
    vocabulary: new Map(),
  });
  const running = { ...record, state: "run", session_id: session.id, verdict: null, summary: null, stop_reason: null, exit_code: null };
  await writeFile(join(scratch, "rollouts.jsonl"), `${JSON.stringify(running)}\n`);
  const log = new LogBuilder({ rollout_id: "roll0" });
  log.call({ messages: [user("hi")] });
  const lines = log.entries.map((entry) => JSON.stringify(entry.type === "opened" ? { ...entry, session_id: session.id } : entry));
  await mkdir(join(scratch, "sessions"));
  await writeFile(join(scratch, "sessions", `${session.id}.jsonl`), `${lines.join("\n")}\n`);
  await using view = await serveView(scratch);
  const page = () => view.text(`rollout?id=${session.id}`);
  assert.doesNotMatch(await page(), /<img class="live-screen/, "no process says that it runs");

  const control = (token: string | null) =>
    writeFile(join(scratch, "control.json"), JSON.stringify({ url: at.proxy.controlUrl, token }), { mode: 0o600 });
  await control(controlToken);
  assert.match(await page(), new RegExp(`<img class="live-screen" src="screen\\?id=${session.id}"`));
  const shown = await view.get(`screen?id=${session.id}`);
  assert.deepEqual([shown.status, shown.headers.get("content-type")], [200, "image/png"]);
  assert.equal(shown.headers.get("cache-control"), "no-store");
  assert.ok(Buffer.from(await shown.arrayBuffer()).equals(png));
  assert.equal((await fetch(`${view.url}/screen?id=${session.id}`)).status, 401, "the view's key is needed");

  for (const token of ["wrong", null]) {
    await control(token);
    assert.doesNotMatch(await page(), /<img class="live-screen/);
    assert.equal((await view.get(`screen?id=${session.id}`)).status, 404);
  }
  await control(controlToken);
  session.screen = null;
  assert.doesNotMatch(await page(), /<img class="live-screen/);
  assert.equal((await view.get(`screen?id=${session.id}`)).status, 404);
  await writeFile(join(scratch, "control.json"), JSON.stringify({ url: "http://evil.example", token: controlToken }));
  assert.doesNotMatch(await page(), /<img class="live-screen/, "only this machine is asked");
});
