/** A run of the small task in this process: real rollouts, whose engine says what the test wants. */
import assert from "node:assert/strict";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { currentOwner } from "../../../base/host/owner.ts";
import type { RolloutRecord } from "../../../base/schema/rollout.ts";
import { engines } from "../../../engines/registry.ts";
import { commandHarness } from "../../../harnesses/command.ts";
import { HarnessProxy } from "../../../proxy/index.ts";
import { DiskStore, type Store } from "../../../proxy/store/index.ts";
import { makeSlots, RunFolder, runTasks } from "../../../rollouts/index.ts";
import type { SandboxBackend } from "../../../sandboxes/sandbox.ts";
import { loadTasks } from "../../../tasks/load-tasks.ts";
import { ScriptedEngine, type ScriptedReply, type WireRequest } from "../engines/scripted-engine.ts";
import { chatHarness, solve } from "./small-task.ts";

type SmallRun = {
  /** The run's folder. */
  path: string;
  retries: number;
  reply?: (request: WireRequest, index: number, engine: ScriptedEngine) => ScriptedReply;
  env?: Record<string, string>;
  storeAt?: (folder: string) => Store;
  /** Instead of the time between two attempts. */
  onPause?: (milliseconds: number, engine: ScriptedEngine) => void;
  onNote?: (text: string) => void;
  /** What is done with the set-up and the batch of one rollout. */
  does?: typeof runTasks;
};

/** Runs what is not done in the folder. `place` is where the task `small` was written. */
export async function runner(
  t: TestContext,
  place: string,
  {
    path,
    retries,
    reply = solve,
    env = {},
    storeAt = (folder) => new DiskStore(folder),
    onPause = () => undefined,
    onNote = () => undefined,
    does = runTasks,
  }: SmallRun,
): Promise<(backend: SandboxBackend, signal?: AbortSignal) => Promise<RolloutRecord[]>> {
  const engine: ScriptedEngine = await ScriptedEngine.start((request, index) => reply(request, index, engine));
  t.after(() => engine[Symbol.asyncDispose]());
  const tasks = await loadTasks(join(place, "small"));
  return async (backend: SandboxBackend, signal = t.signal) => {
    await using folder = await RunFolder.open(path);
    const vllm = engines.find(({ name }) => name === "vllm")?.create({ baseUrl: engine.url, apiKey: null });
    assert.ok(vllm);
    await using proxy = await HarnessProxy.start({ engine: vllm, store: storeAt(RunFolder.sessions(path)), version: "test" });
    try {
      return await does(
        {
          run_id: "r",
          owner: await currentOwner(),
          backend,
          proxy,
          folder,
          slots: makeSlots({ init: 1, run: 1, post: 1 }),
          pause: async (milliseconds) => onPause(milliseconds, engine),
          onProgress: (event) => event.type === "note" && onNote(event.text),
        },
        {
          tasks,
          samples: 1,
          retries,
          harness: commandHarness({ argv: ["node", chatHarness, "{instruction}"], env, makes: ["title"] }),
          session: { purpose: "train" },
        },
        signal,
      );
    } finally {
      await vllm.close();
    }
  };
}
