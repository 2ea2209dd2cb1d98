/** verifiers' own branches have each trained token's kept tokens at that token, of traces that our exporter and loader, or our live hook, made. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { promisify } from "node:util";
import { exporterNamed } from "../../../exporters/registry.ts";
import { reconstruct } from "../../../reconstruct/index.ts";
import { scratchFolder } from "../../fakes/machine/scratch-folder.ts";
import { cutSet } from "../../fakes/proxies/cut-set.ts";
import { enginesAt } from "../../fakes/proxies/engines-at.ts";
import { serviceTask } from "../../fakes/proxies/service-at.ts";
import { exported } from "../../fakes/records/exported.ts";
import { need } from "../../needs.ts";
import { consumerScripts, consumersPlace } from "./place.ts";

type ReadBranch = { token_ids: number[]; trained: boolean[]; sets: number[][] };

const clients = join(import.meta.dirname, "../../../clients/python");
const scratch = scratchFolder("consumer-support");

test("verifiers has the kept tokens of each trained token at that token", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "consumers"))) return;
  await using at = await enginesAt((_, __, index) => ({ text: `turn ${index}` }), { a: { support: "told" } });
  const sampling = { temperature: 1, top_p: 0.9, top_k: 5 };
  const client = await at.open({ purpose: "train", continuity: "auto", relay: "buffered", sampling });
  const messages: unknown[] = [{ role: "user", content: "go" }];
  for (let turn = 0; turn < 3; turn++) messages.push(await client.say(messages), { role: "user", content: "on" });
  const trajectory = reconstruct(await client.entries(), { status: "graded", reward: 1 });
  const { bytes } = await exported(exporterNamed("verifiers"), [trajectory], { own: { kept_sets: "train" } });
  const { media } = at.proxy.sessions.store;
  await mkdir(join(scratch, "media"));
  for (const { ref } of trajectory.blobs) await writeFile(join(scratch, "media", ref), media?.read(ref) ?? "");
  await writeFile(join(scratch, "traces.jsonl"), bytes);
  assertSets(await readBy(t, scratch));
});

test("verifiers has them, too, in the traces of its live hook", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "consumers"))) return;
  const { url, whenQueued } = await cutSet(t);
  const read = readBy(t, url, JSON.stringify(serviceTask));
  await Promise.race([whenQueued(), read]);
  assertSets(await read);
});

async function readBy(t: TestContext, ...args: string[]): Promise<ReadBranch[]> {
  const { stdout } = await promisify(execFile)(
    join(consumersPlace(), "venv/bin/python"),
    ["-W", "ignore", join(consumerScripts, "support.py"), ...args],
    { env: { ...process.env, PYTHONPATH: clients, OMP_NUM_THREADS: "1", PYTHONDONTWRITEBYTECODE: "1" }, signal: t.signal },
  );
  return JSON.parse(stdout) as ReadBranch[];
}

function assertSets(branches: ReadBranch[]): void {
  assert.equal(branches.length, 1);
  for (const { token_ids, trained, sets } of branches) {
    assert.ok(trained.filter(Boolean).length > 10);
    // The scripted engine keeps the sampled token and the next id.
    assert.deepEqual(
      sets,
      token_ids.map((id, place) => (trained[place] ? [id, id + 1] : [])),
    );
  }
}
