/**
 * Runs the real program of each harness that takes tool servers on a rollout whose tool answers with a picture: with our configuration,
 * and with the setting taken out that `harness_blind` names.
 */
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { z } from "zod";
import { Environment } from "../../base/schema/task.ts";
import { claudeCode } from "../../harnesses/claude-code.ts";
import { commandHarness } from "../../harnesses/command.ts";
import type { Harness, HarnessLaunch } from "../../harnesses/harness.ts";
import { harnesses } from "../../harnesses/index.ts";
import { opencode } from "../../harnesses/opencode.ts";
import { qwenCode } from "../../harnesses/qwen-code.ts";
import { type RolloutOutcome, rolloutsOn } from "../../rollouts/index.ts";
import { pickBackend } from "../../sandboxes/index.ts";
import type { WireRequest } from "../fakes/engines/scripted-engine.ts";
import { pngOf, pngOfBytes } from "../fakes/records/png.ts";
import { runner } from "../fakes/rollouts/small-run.ts";
import { writeTask } from "../fakes/rollouts/small-task.ts";
import { toolNameIn } from "../fakes/tools/tool-name.ts";
import { placeOf, rawService, usualAnswer } from "../fakes/tools/tool-services.ts";
import { installedPack } from "./installed-pack.ts";

/** A CLI starts in about a second; on a loaded machine in ten times that. */
const timeout = 300_000;

/** The largest screen that a task may have. */
const picture = pngOf(1920, 1200).toString("base64");

const environment = Environment.parse({
  services: { desk: { command: ["serve"] } },
  tools: [{ name: "desk", service: "desk", port: 8000 }],
});

for (const harness of harnesses.filter(({ tools }) => tools))
  test(`${harness.name} shows the model the picture of a whole screen, byte for byte`, { timeout }, async (t) => {
    const run = await rolloutWith(t, harness);
    if (run === null) return;
    const { record } = run.outcome;
    assert.deepEqual([record.error, record.verdict?.reward], [null, 1], record.output_tail ?? undefined);
    assert.equal(run.requests.length, 2);
    assert.ok(JSON.stringify(run.requests[1]?.messages).includes(picture), "the picture's own bytes reach the engine");
  });

const Json = z.record(z.string(), z.json());
type Json = z.infer<typeof Json>;

/** What becomes of a configuration in which a person forgot the setting. */
const forgetful: { harness: Harness; forget: (launch: HarnessLaunch) => HarnessLaunch; cure: RegExp }[] = [
  {
    harness: qwenCode,
    forget: (launch) => {
      const path = ".qwen/settings.json";
      const text = without(launch.files[path], ["model", "generationConfig"], "modalities");
      return { ...launch, files: { ...launch.files, [path]: text } };
    },
    cure: /Qwen Code hands them on by model\.generationConfig\.modalities: \{"image": true\} in ~\/\.qwen\/settings\.json/,
  },
  {
    harness: opencode,
    forget: (launch) => {
      const key = "OPENCODE_CONFIG_CONTENT";
      const models = ["provider", "alidade", "models"];
      const [model = ""] = Object.keys(at(Json.parse(JSON.parse(launch.env[key] ?? "")), models));
      const text = without(without(launch.env[key], [...models, model], "modalities"), [...models, model], "attachment");
      return { ...launch, env: { ...launch.env, [key]: text } };
    },
    cure: /opencode hands them on by attachment: true and modalities\.input: \["text", "image"\]/,
  },
];

for (const { harness, forget, cure } of forgetful)
  test(`${harness.name} without its setting for pictures ends as harness_blind, and the message names the setting`, {
    timeout,
  }, async (t) => {
    const run = await rolloutWith(t, { ...harness, launch: (context) => forget(harness.launch(context)) });
    if (run === null) return;
    const { record, trajectory } = run.outcome;
    assert.deepEqual([record.error?.code, record.verdict], ["harness_blind", null], JSON.stringify(record));
    assert.deepEqual([trajectory?.in_loss, trajectory?.reward], [false, null]);
    assert.match(record.error?.message ?? "", /desk\.screen answered with a picture of 1920x1200 .* shows no picture/);
    assert.match(record.error?.message ?? "", cure);
    assert.equal(run.requests.length, 1, "the model is not asked what it cannot see");
  });

test("Claude Code hands on a picture of 512 000 bytes as it is, and the message names this limit for a larger one", {
  timeout,
}, async (t) => {
  const kept = pngOfBytes(1920, 1200, 512_000).toString("base64");
  const run = await rolloutWith(t, claudeCode, kept);
  if (run === null) return;
  assert.deepEqual([run.outcome.record.error, run.outcome.record.verdict?.reward], [null, 1]);
  assert.ok(JSON.stringify(run.requests[1]?.messages).includes(kept));
  const larger = await rolloutWith(t, claudeCode, pngOfBytes(1920, 1200, 512_001).toString("base64"));
  const { error, verdict } = larger?.outcome.record ?? assert.fail();
  assert.deepEqual([error?.code, verdict], ["harness_blind", null]);
  assert.match(
    error?.message ?? "",
    /1920x1200 \(512001 bytes, .* shows another one of 1920x1200 .* Claude Code hands on only pictures of at most 512000/,
  );
});

test("a command of one's own that starts a known harness has the cure of that harness", () => {
  const { sight } = commandHarness({ argv: ["env", "A=b", "qwen", "--prompt={instruction}"] });
  assert.match(sight ?? "", /modalities: \{"image": true\}/);
  assert.equal(commandHarness({ argv: ["python3", "agent.py"] }).sight, undefined);
});

/** A rollout whose model asks for a picture once and then ends. Its work is right before it begins. null: the harness is not installed. */
async function rolloutWith(
  t: TestContext,
  harness: Harness,
  shown = picture,
): Promise<{ outcome: RolloutOutcome; requests: WireRequest[] } | null> {
  if ((await installedPack(t, harness)) === null) return null;
  const place = await mkdtemp(join(tmpdir(), "alidade-pictures-"));
  t.after(() => rm(place, { recursive: true }));
  await writeFile(join(await writeTask(place, "small", "", { memory_mb: 4096, disk_mb: 512 }), "files", "done.txt"), "yes\n");
  const requests: WireRequest[] = [];
  const outcomes: RolloutOutcome[] = [];
  const service = rawService((message) => {
    if (message.method !== "tools/call") return usualAnswer(message, '[{"name":"screen","inputSchema":{"type":"object","properties":{}}}]');
    const content = [{ type: "image", data: shown, mimeType: "image/png" }];
    return JSON.stringify({ jsonrpc: "2.0", id: message.id, result: { content } });
  });
  const { backend } = await pickBackend("process", t.signal);
  const create: typeof backend.create = async ({ services, ...spec }, signal) =>
    Object.assign(await backend.create(spec, signal), services && placeOf({ desk: service }));
  const run = await runner(t, place, {
    path: join(place, "run"),
    retries: 0,
    reply: (request) => {
      // The proxy's own questions to the engine have no instruction of ours.
      if (!JSON.stringify(request.messages).includes("Make done.txt")) return { text: "yes" };
      requests.push(request);
      if (requests.length > 1) return { text: "done" };
      const name = toolNameIn(request, "desk", "screen") ?? assert.fail(`no tool of the desk in ${JSON.stringify(request.tools)}`);
      return { tool_calls: [{ id: "c0", name, arguments: "{}" }] };
    },
    does: async (setup, { tasks: [task] }, signal) => {
      assert.ok(task);
      const own = { ...task, environment: { ...task.environment, services: environment.services, tools: environment.tools } };
      const plan = { rollout_id: "alone", attempt: 1, group_id: "g", group_size: 1, sample_index: 0, retries: 0, task_hash: "hash" };
      outcomes.push(await rolloutsOn(setup).submit({ ...plan, task: own, harness, session: { purpose: "train" } }, signal));
      return outcomes.map(({ record }) => record);
    },
  });
  await run({ ...backend, create });
  return { outcome: outcomes[0] ?? assert.fail(), requests };
}

/** The text of a configuration without a key of the object at `path`, which must be there. */
function without(text: string | undefined, path: string[], key: string): string {
  const whole = Json.parse(JSON.parse(text ?? ""));
  const inside = at(whole, path);
  assert.ok(key in inside, `${key} is set`);
  delete inside[key];
  return JSON.stringify(whole);
}

/** The object at a path, itself and no copy. */
function at(whole: Json, path: string[]): Json {
  return path.reduce((inside, step) => {
    const next = inside[step];
    assert.ok(typeof next === "object" && next !== null && !Array.isArray(next), step);
    return next;
  }, whole);
}
