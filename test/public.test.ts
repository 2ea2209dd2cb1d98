/** What `import "alidade"` gives. A name that goes is a broken program elsewhere, so the list stands here once more. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import * as alidade from "../index.ts";
import { ScriptedEngine } from "./fakes/engines/scripted-engine.ts";

const names = [
  // Proxy, engines, stores.
  ...["HarnessProxy", "neutralSampling", "dialects", "engines", "engineNamed", "startPracticeEngine", "DiskStore", "MemoryStore"],
  // Running tasks.
  ...["loadTasks", "taskFormats", "rolloutsOn", "makeSlots", "runTasks", "RunFolder", "readRollouts", "readTrajectories", "eachTrajectory"],
  ...[
    "harnesses",
    "harnessNamed",
    "commandHarness",
    "backends",
    "folderArchive",
    "folderContent",
    "pickBackend",
    "reapAll",
    "graders",
    "checkTask",
  ],
  ...["toRecording", "toReplayPlans", "turnsToForkAt"],
  ...["ServiceClient", "RolloutSet"],
  // From a log to a trainer.
  ...["reconstruct", "joinMembers", "TokenPaths", "verifyRows", "verifyTrajectory", "FlatRow", "FlatSegment"],
  ...["selectRows", "selections", "selectionNamed", "groupAdvantages", "componentsOfRow", "weightedTotal", "RewardComponent"],
  ...["exporters", "exporterNamed", "exportTrajectories"],
  // Configuration, records, errors.
  ...["Config", "configSchema", "loadConfig"],
  ...["Message", "Sampling", "Tool", "ToolChoice", "Usage", "RolloutRecord", "Verdict"],
  ...["Budgets", "LogEntry", "logSchemaVersion", "Policy", "Purpose", "SessionSpec", "NewSession"],
  ...["Environment", "GraderSpec", "Limits", "Task"],
  ...["CallRecord", "Fidelity", "Trace", "Trajectory", "TreeNode", "trajectorySchemaVersion"],
  ...["AlidadeError", "errorCodes", "version"],
];

test("the public names are these, and each of them is something", () => {
  assert.deepEqual(Object.keys(alidade).sort(), [...names].sort());
  for (const [name, value] of Object.entries(alidade)) assert.notEqual(value, undefined, name);
});

test("importing it does nothing: no output, nothing left open", async () => {
  const started = `import(${JSON.stringify(join(import.meta.dirname, "../index.ts"))})`;
  const { stdout, stderr } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", started], { timeout: 30_000 });
  assert.deepEqual([stdout, stderr], ["", ""]);
});

test("a program of ten lines starts a proxy, records a session and makes rows of its trajectory", async () => {
  await using server = await ScriptedEngine.start(() => ({ text: "hello" }));
  const { engineNamed, HarnessProxy, MemoryStore, selectRows } = alidade;
  const engine = engineNamed("vllm").create({ baseUrl: server.url, apiKey: null });
  {
    await using proxy = await HarnessProxy.start({ engine, store: new MemoryStore(), version: "mine" });
    const { session, key } = await proxy.openSession({ purpose: "train" });
    const response = await fetch(`${proxy.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "scripted", messages: [{ role: "user", content: "hi" }] }),
    });
    assert.equal(response.status, 200);
    await response.text();
    await session.seal("done");
    await session.reward(1, {});
    const rows = [...selectRows(await proxy.trajectory(session.id)).rows];
    assert.equal(rows.length, 1);
    assert.equal(rows[0]?.reward, 1);
    assert.equal(rows[0]?.loss_mask.filter((one) => one === 1).length, "hello".length + 1);
  }
  await engine.close();
});
