/** What a model did not get of a request is one line wherever a session is looked at. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { Trajectory } from "../../../base/schema/trajectory.ts";
import { reconstruct } from "../../../reconstruct/index.ts";
import { ScriptedEngine } from "../../fakes/engines/scripted-engine.ts";
import { scratchFolder } from "../../fakes/machine/scratch-folder.ts";
import { cli, jsonOf } from "../../fakes/processes/cli.ts";
import { assistant, LogBuilder, user } from "../../fakes/records/log-builder.ts";

const scratch = scratchFolder("omitted");

const script = `for (const more of [{ tools: [{ type: "web_search" }], truncation: "auto" }, { truncation: "auto" }, {}])
  await fetch(process.env.OPENAI_BASE_URL + "/responses", {
    method: "POST",
    headers: { authorization: "Bearer " + process.env.OPENAI_API_KEY, "content-type": "application/json" },
    body: JSON.stringify({ model: "m", input: "hi", ...more }),
  });`;

const line = /the model did not get field truncation \(2 calls\), tool web_search \(1 call\)/;

function record(engine: ScriptedEngine, out: string, script: string) {
  const program = [process.execPath, "--input-type=module", "-e", script];
  return cli(["record", "--any-model", "--engine", engine.url, "--out", out, "--", ...program]);
}

test("a recording names the tools and fields that no engine gets: record, show, fidelity, doctor and the trajectory", async () => {
  await using engine = await ScriptedEngine.start(() => ({ text: "ok" }));
  const out = join(scratch, "recorded");
  const recorded = await record(engine, out, script);
  assert.equal(recorded.code, 0, recorded.stderr);
  assert.match(recorded.stderr, line);
  const { calls, fidelity, session_id } = Trajectory.parse(JSON.parse(await readFile(join(out, "trajectories.jsonl"), "utf8")));
  assert.deepEqual(
    calls.map(({ omitted }) => omitted),
    [["tool web_search", "field truncation"], ["field truncation"], undefined],
  );
  assert.deepEqual(fidelity.omitted, { "tool web_search": 1, "field truncation": 2 });
  assert.match((await cli(["show", session_id, "--run", out])).stdout, line);
  assert.match((await cli(["fidelity", "--run", out])).stdout, line);
  assert.deepEqual(jsonOf<{ omitted: unknown }>(await cli(["fidelity", "--run", out, "--json"])).omitted, fidelity.omitted);
  assert.match((await cli(["doctor", "--run", out])).stdout, line);
});

test("a recording of which everything reached the model says so to doctor, and nothing elsewhere", async () => {
  await using engine = await ScriptedEngine.start(() => ({ text: "ok" }));
  const out = join(scratch, "whole");
  const whole = script.replace(/\[\{ tools.*\{\}\]/, "[{}]");
  const recorded = await record(engine, out, whole);
  assert.equal(recorded.code, 0, recorded.stderr);
  for (const said of [recorded, await cli(["fidelity", "--run", out])]) assert.doesNotMatch(said.stdout + said.stderr, /did not get/);
  assert.match((await cli(["doctor", "--run", out])).stdout, /ok +requests +the model got every tool and field/);
});

test("logs of an older release, which left history out too, are counted by what they say", () => {
  const log = new LogBuilder();
  log.call({ messages: [user("go")], says: assistant("ok") });
  const entries = log.entries.map((entry) =>
    entry.type === "call_begun" ? { ...entry, native: { omitted_tools: ["web_search"], omitted_items: ["web_search_call"] } } : entry,
  );
  assert.deepEqual(reconstruct(entries).fidelity.omitted, { "tool web_search": 1, "history web_search_call": 1 });
});
