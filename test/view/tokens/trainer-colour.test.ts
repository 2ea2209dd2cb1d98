/** Tokens by a trainer's logprobs: the difference where it can be held against the record, and why where it cannot. */
import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import type { Trajectory } from "../../../base/schema/trajectory.ts";
import { startPracticeEngine } from "../../../practice/start.ts";
import { type DriftSummary, TrainerLogprobs } from "../../../reconstruct/index.ts";
import { scratchFolder } from "../../fakes/machine/scratch-folder.ts";
import { cli, jsonOf } from "../../fakes/processes/cli.ts";
import { recordChat } from "../../fakes/records/record-chat.ts";
import { viewedRollout, writeViewedRun } from "../../fakes/records/viewed-run.ts";
import { serveView } from "../../fakes/view/served-view.ts";

const scratch = scratchFolder("trainer-colour");

const classesOf = (page: string) => [...page.matchAll(/<i class="m-[^"]* (d-\w+)"/g)].map(([, kind]) => kind);

test("what `audit --logprobs` writes is a trainer's file: it agrees with the record, and colours every sampled token", async () => {
  const run = join(scratch, "run");
  await using engine = await startPracticeEngine({ seed: 10 });
  await recordChat(engine.url, run, 3);
  const scored = join(scratch, "scored.jsonl");
  const audited = await cli(["audit", "--run", run, "--engine", engine.url, "--logprobs", scored, "--json"]);
  assert.equal(audited.code, 0, audited.stderr);
  const { compared } = jsonOf<{ compared: number }>(audited);
  const { drift } = jsonOf<{ drift: DriftSummary }>(await cli(["fidelity", "--run", run, "--trainer-logprobs", scored, "--json"]));
  assert.deepEqual([drift.compared, drift.causes, drift.unknown_calls], [compared, {}, 0]);
  assert.match(
    (await cli(["audit", "--run", run, "--engine", engine.url, "--logprobs", scored])).stderr,
    /--logprobs is \S+scored\.jsonl, which cannot be made: EEXIST/,
  );
  const shown = join(scratch, "static");
  assert.equal((await cli(["view", run, "--static", shown, "--trainer-logprobs", scored])).code, 0);
  const page = await readFile(join(shown, "tokens-turn-1-0.html"), "utf8");
  assert.match(page, /title="[^"]*logprob (\S+) · trainer \1, Δ -?0\.000 ·/);
  assert.ok(classesOf(page).length > 20 && classesOf(page).every((kind) => kind === "d-0"));
});

test("entropy is named among the colours as one that no record has, with the reason", async () => {
  const folder = join(scratch, "entropy");
  await writeViewedRun(folder);
  await using view = await serveView(folder);
  const page = await view.text("tokens?id=ses0&colour=entropy");
  const [, described] = /<span aria-disabled="true" aria-describedby="([^"]+)">entropy<\/span>/.exec(page) ?? assert.fail();
  assert.match(page, new RegExp(`id="${described}">No colour by entropy: no record has it, because it needs [^<]*\\.<`));
  assert.match(page, /<div id="tokens" data-colour="logprob">/, "what is asked for and is not there shows logprobs");
  assert.doesNotMatch(page, /colour-entropy/);
});

test("a token's colour is that of its own difference, by its place in the call's sample", async () => {
  const folder = join(scratch, "places");
  await writeViewedRun(folder);
  const { trajectory } = viewedRollout({
    ...{ at: 1, task_id: "clamp", group_id: "clamp-g0", sample_index: 1, size: 8, reward: 0, turns: 4, words: 1 },
    vocabulary: new Map(),
  });
  const [call] = trajectory.calls;
  const recorded = recordedOf(trajectory, call?.call_id ?? "");
  const logprobs = recorded.map((one, at) => (one === null ? null : at === 1 ? one - 0.5 : at === 2 ? null : one));
  await using view = await serveView(folder, null, undefined, {
    trainer: new Map([[call?.call_id ?? "", TrainerLogprobs.parse({ call_id: call?.call_id, logprobs })]]),
  });
  const page = await view.text(`tokens?id=ses1&from=0&colour=${encodeURIComponent("Δtrainer")}`);
  assert.match(page, /data-colour="Δtrainer"/);
  const kinds = classesOf(page);
  assert.deepEqual(kinds.slice(0, 4), ["d-0", "d-3", "d-none", "d-0"].slice(0, Math.min(4, recorded.length)));
  assert.ok(
    kinds.slice(recorded.length).every((kind) => kind === "d-none"),
    "the file says nothing of other calls",
  );
});

test("a call whose numbers are of another distribution has no difference, and says why", async () => {
  const folder = join(scratch, "grammar");
  await writeViewedRun(folder);
  await using plain = await serveView(folder);
  const trajectory = await plain.reader.trajectory("ses5");
  const call = trajectory.calls.find(({ logprob_semantics }) => logprob_semantics.grammar) ?? assert.fail("no call is under a grammar");
  const logprobs = recordedOf(trajectory, call.call_id);
  await using view = await serveView(folder, null, undefined, {
    trainer: new Map([[call.call_id, TrainerLogprobs.parse({ call_id: call.call_id, logprobs })]]),
  });
  const page = await view.text("tokens?id=ses5&from=0");
  assert.match(page, /The trainer's logprobs of this call cannot be held against the recorded ones: sampled under grammar/);
  assert.ok(classesOf(page).every((kind) => kind === "d-none"));
  const without = await plain.text(`tokens?id=ses5&from=0&colour=${encodeURIComponent("Δtrainer")}`);
  assert.doesNotMatch(without, /Δtrainer|d-none/, "without a file the colour is not offered");
});

test("a trainer's file that is none is refused in a sentence", async () => {
  const folder = join(scratch, "refused");
  await mkdir(folder, { recursive: true });
  await writeViewedRun(folder);
  const path = join(scratch, "bad.jsonl");
  await writeFile(path, '{"call_id":"c","logprobs":["a"]}\n');
  const refused = async (file: string) =>
    (await cli(["view", folder, "--static", join(scratch, "never"), "--trainer-logprobs", file])).stderr;
  assert.match(await refused(path), /bad\.jsonl line 1 /);
  assert.match(await refused(join(scratch, "none")), /--trainer-logprobs: cannot read it/);
});

function recordedOf({ nodes }: Trajectory, callId: string): (number | null)[] {
  const sampled = nodes.filter(({ call_id, kind }) => call_id === callId && kind === "sampled");
  return sampled.flatMap(({ token_ids, logprobs }) => logprobs ?? token_ids.map(() => null));
}
