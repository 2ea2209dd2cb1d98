/**
 * Checks rows with pictures in the trainers' own code. The practice engine writes 64 pads a picture, as Qwen2.5-VL does for
 * 224 × 224 pixels. So its rows fit a small model that the check makes. For each trained token, that model must give the same
 * logprob from a trainer's batch as from the flat row.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createWriteStream } from "node:fs";
import { cp, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import type { Trajectory } from "../../../base/schema/trajectory.ts";
import { engineNamed } from "../../../engines/registry.ts";
import { exportTrajectories } from "../../../exporters/export-trajectories.ts";
import { exporterNamed } from "../../../exporters/registry.ts";
import { startPracticeEngine } from "../../../practice/start.ts";
import { inputIds, picturePad } from "../../../practice/tokenizer/vocabulary.ts";
import { HarnessProxy } from "../../../proxy/index.ts";
import { DiskStore } from "../../../proxy/store/index.ts";
import { scratchFolder } from "../../fakes/machine/scratch-folder.ts";
import { Client } from "../../fakes/proxies/proxy-at.ts";
import { pngUrl } from "../../fakes/records/png.ts";
import { need } from "../../needs.ts";
import { consumerScripts, consumersPlace } from "./place.ts";

const scratch = scratchFolder("consumer-pictures");
const formats = [
  "flat",
  "trl-grpo",
  "trl-sft",
  "verl",
  "skyrl",
  "openrlhf",
  "areal",
  "tinker",
  "agent-lightning",
  "slime",
  "miles",
  "prime-rl",
  "nemo-rl",
];

test("a trainer's batch of rows with pictures is the sampled context", { timeout: 900_000 }, async (t) => {
  if (!(await need(t, "consumers"))) return;
  const trajectories = await sampled();
  for (const format of formats)
    await exportTrajectories(exporterNamed(format), trajectories, createWriteStream(join(scratch, `${format}.jsonl`)));
  await cp(join(scratch, "sessions", "media"), join(scratch, "media"), { recursive: true });
  const facts = join(scratch, "facts.json");
  // The tokens before and after the pads frame a picture. No id of a video is ever sampled.
  await writeFile(
    facts,
    JSON.stringify({ vocabulary: inputIds + 1, start: picturePad - 1, pad: picturePad, end: picturePad + 1, video: inputIds }),
  );
  const python = join(consumersPlace(), "venv/bin/python");
  const { stdout } = await promisify(execFile)(python, ["-W", "ignore", join(consumerScripts, "pictures.py"), scratch, facts], {
    env: { ...process.env, OMP_NUM_THREADS: "1", PYTHONDONTWRITEBYTECODE: "1", TORCH_COMPILE_DISABLE: "1" },
    signal: t.signal,
  });
  const { worst, swapped, refused } = JSON.parse(stdout) as {
    worst: Record<string, number>;
    swapped: number;
    refused: Record<string, string>;
  };
  t.diagnostic(stdout);
  assert.deepEqual(Object.keys(worst), [
    "trl",
    "trl_sft",
    "verl",
    "skyrl",
    "openrlhf",
    "areal",
    "tinker",
    "agent_lightning",
    "slime",
    "prime_rl",
    "nemo_rl",
  ]);
  for (const [trainer, gap] of Object.entries(worst)) assert.ok(gap < 1e-4, `${trainer}: ${gap}`);
  assert.ok(swapped > 1e-2, `two pictures in the other order change a logprob by ${swapped} only: the comparison sees nothing`);
  const words = { settings: /64 pads in the row and \d+ by/, processor: /the processor's is 1/, place: /not the pads of one picture/ };
  const more = {
    missing: /64 pads of the row belong to no picture/,
    none: /model's own processor/,
    trainer: /takes none from a rollout_func/,
    areal: /model's own processor/,
    verl: /model's own processor/,
    bytes: /holds other bytes/,
  };
  for (const [name, pattern] of Object.entries({ ...words, ...more })) assert.match(refused[name] ?? "", pattern);
});

/** A group of two rollouts, each of two turns that see a picture. */
async function sampled(): Promise<Trajectory[]> {
  await using engine = await startPracticeEngine({ seed: 7 });
  await using scope = new AsyncDisposableStack();
  const adapter = engineNamed("vllm").create({ baseUrl: engine.url, apiKey: null });
  scope.defer(() => adapter.close());
  const policy = { version: "weights-7", step: 7 };
  const store = new DiskStore(join(scratch, "sessions"));
  const proxy = scope.use(await HarnessProxy.start({ engine: adapter, store, version: "test", policy }));
  const played: Trajectory[] = [];
  for (const index of [0, 1]) {
    const spec = { purpose: "train", group_id: "g", sample_index: index, rollout_id: `roll${index}` } as const;
    const { session, key } = await proxy.openSession({ any_model: true, ...spec });
    const client = new Client(proxy, session.id, key);
    const messages: Record<string, unknown>[] = [shows(1)];
    messages.push(await client.say(messages, { max_tokens: 12, seed: 10 + index }), shows(2 + index));
    await client.say(messages, { max_tokens: 12, seed: 20 + index });
    played.push({ ...(await client.trajectory()), reward: 1 - index });
  }
  return played;
}

function shows(colour: number): Record<string, unknown> {
  const url = pngUrl(224, 224, [colour * 60, 7, 255 - colour * 60]);
  return {
    role: "user",
    content: [
      { type: "text", text: "What is it?" },
      { type: "image_url", image_url: { url } },
    ],
  };
}
