/** A recorded conversation with pictures, from the command line: exported with its pictures beside it, and audited with them. */
import assert from "node:assert/strict";
import { mkdir, readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { engineNamed } from "../../../engines/registry.ts";
import { startPracticeEngine } from "../../../practice/start.ts";
import { HarnessProxy } from "../../../proxy/index.ts";
import { DiskStore } from "../../../proxy/store/index.ts";
import { ScriptedEngine } from "../../fakes/engines/scripted-engine.ts";
import { scratchFolder } from "../../fakes/machine/scratch-folder.ts";
import { cli } from "../../fakes/processes/cli.ts";
import { Client } from "../../fakes/proxies/proxy-at.ts";
import { pngUrl } from "../../fakes/records/png.ts";

const scratch = scratchFolder("pictures");

test("an export has the pictures of its rows beside it, and an audit scores the record with them", async () => {
  await using engine = await startPracticeEngine({ seed: 5 });
  const adapter = engineNamed("vllm").create({ baseUrl: engine.url, apiKey: null });
  const run = join(scratch, "run");
  {
    await using proxy = await HarnessProxy.start({ engine: adapter, store: new DiskStore(join(run, "sessions")), version: "test" });
    const { session, key } = await proxy.openSession({ any_model: true, purpose: "train" });
    const client = new Client(proxy, session.id, key);
    const content = [{ type: "image_url", image_url: { url: pngUrl(64, 40) } }];
    await client.say([{ role: "user", content }], { max_tokens: 12 });
    await client.settled();
    await session.reward(1, {});
  }
  await adapter.close();

  await mkdir(join(scratch, "out"));
  const out = join(scratch, "out", "rows.jsonl");
  const exported = await cli(["export", "--run", run, "--format", "flat", "--out", out]);
  assert.equal(exported.code, 0, exported.stderr);
  const [row] = (await readFile(out, "utf8"))
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as { media: { sha256: string; length: number }[] });
  assert.deepEqual(
    row?.media.map(({ length }) => length),
    [64],
  );
  assert.deepEqual(
    await readdir(join(scratch, "out", "media")),
    row?.media.map(({ sha256 }) => sha256),
  );

  const audited = await cli(["audit", "--run", run, "--engine", engine.url, "--tolerance", "0"]);
  assert.equal(audited.code, 0, audited.stdout + audited.stderr);

  await mkdir(join(scratch, "verl"));
  assert.equal((await cli(["export", "--run", run, "--format", "verl", "--out", join(scratch, "verl", "verl.jsonl")])).code, 0);
  assert.equal((await readdir(join(scratch, "verl", "media"))).length, 1);
  const refused = await cli(["export", "--run", run, "--format", "verifiers", "--out", join(scratch, "verifiers.jsonl")]);
  assert.match(refused.stderr, /images/);
  const chat = join(scratch, "chat.jsonl");
  assert.equal((await cli(["export", "--run", run, "--format", "chat", "--out", chat])).code, 0);
  assert.ok((await readFile(chat, "utf8")).includes(pngUrl(64, 40)));
});

test("an export copies only the experts that its rows name, and needs no others", async () => {
  await using engine = await ScriptedEngine.start((_, index) => ({ text: `turn ${index}` }));
  engine.routing = "told";
  const adapter = engineNamed("vllm").create({ baseUrl: engine.url, apiKey: null });
  const run = join(scratch, "experts");
  {
    await using proxy = await HarnessProxy.start({ engine: adapter, store: new DiskStore(join(run, "sessions")), version: "test" });
    for (const content of ["one", "two"]) {
      const { session, key } = await proxy.openSession({ any_model: true, purpose: "train", relay: "buffered" });
      const client = new Client(proxy, session.id, key);
      await client.say([{ role: "user", content }]);
      await client.settled();
      await session.reward(1, {});
    }
  }
  await adapter.close();
  const exportTo = async (format: string, ...flags: string[]) => {
    const folder = join(scratch, `experts-${format}${flags.length}`);
    await mkdir(folder);
    const { code, stderr } = await cli(["export", "--run", run, "--format", format, "--out", join(folder, "rows.jsonl"), ...flags]);
    return { code, stderr, files: await readdir(join(folder, "media")).catch(() => []) };
  };
  const all = await readdir(join(run, "sessions", "media"));
  const verl = await exportTo("verl");
  assert.equal(all.length, 2);
  assert.deepEqual([verl.code, verl.files.sort()], [0, all.sort()], verl.stderr);
  assert.deepEqual((await exportTo("openrlhf", "--group-size", "1")).files, []);
  await rm(join(run, "sessions", "media", all[0] as string));
  assert.notEqual((await exportTo("verl", "--allow-grammar")).code, 0);
  const areal = await exportTo("areal", "--group-size", "1");
  assert.deepEqual([areal.code, areal.files], [0, []], areal.stderr);
});
