/** Rollouts in Docker whose harness makes one call and whose grader does nothing, in a process of their own: it may be killed in the middle. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { currentOwner } from "../../base/host/owner.ts";
import { Task } from "../../base/schema/task.ts";
import { engineNamed } from "../../engines/registry.ts";
import { commandHarness } from "../../harnesses/command.ts";
import { HarnessProxy } from "../../proxy/index.ts";
import { DiskStore } from "../../proxy/store/index.ts";
import { makeSlots, RunFolder, runTasks } from "../../rollouts/index.ts";
import { docker } from "../../sandboxes/docker.ts";
import { WarmPool } from "../../sandboxes/warm-pool.ts";
import { loadTasks } from "../../tasks/load-tasks.ts";
import { ScriptedEngine } from "../../test/fakes/engines/scripted-engine.ts";
import { answerParent } from "../child.ts";

/** `tasks`: a folder of tasks in the place of one that does nothing. */
export type NoOps = { run_id: string; rollouts: number; concurrency: number; warm: number; tasks?: string };

const task = Task.parse({
  task_id: "no-op",
  instruction: "i",
  limits: { memory_mb: 256, disk_mb: 64, agent_seconds: 120, grade_seconds: 120 },
  grader: { kind: "script", command: ["echo", '{"reward":1}'] },
});

const body = JSON.stringify({ model: "scripted", messages: [{ role: "user", content: "i" }] });
/** With the shell alone, so that the harness itself costs nothing. */
const oneCall = [
  "exec 3<>/dev/tcp/127.0.0.1/4000",
  `printf 'POST /v1/chat/completions HTTP/1.1\\r\\nHost: a\\r\\nContent-Type: application/json\\r\\nContent-Length: ${body.length}\\r\\nConnection: close\\r\\n\\r\\n%s' '${body}' >&3`,
  "cat <&3",
].join("; ");
let done = 0;

/** Milliseconds for all of them. */
async function run({ run_id, rollouts, concurrency, warm, tasks }: NoOps): Promise<number> {
  done = 0;
  const wanted = tasks === undefined ? [task] : await loadTasks(tasks);
  const place = await mkdtemp(join(tmpdir(), "alidade-bench-"));
  await using engine = await ScriptedEngine.start(() => ({ text: "done" }));
  const adapter = engineNamed("vllm").create({ baseUrl: engine.url, apiKey: null });
  const signal = AbortSignal.timeout(3_600_000);
  const started = performance.now();
  {
    await using folder = await RunFolder.open(join(place, "run"));
    const store = new DiskStore(RunFolder.sessions(folder.path));
    await using proxy = await HarnessProxy.start({ engine: adapter, store, version: "bench" });
    await using pool = new WarmPool(docker, { sandboxes: warm, seconds: 600 });
    const slots = makeSlots({ init: Math.ceil(concurrency / 2), run: concurrency, post: Math.ceil(concurrency / 2) });
    const onProgress = ({ type }: { type: string }): void => {
      if (type === "done") done += 1;
    };
    const setup = { run_id, owner: await currentOwner(), backend: docker, proxy, folder, slots, onProgress };
    const harness = commandHarness({ argv: ["bash", "-c", oneCall] });
    const batch = { tasks: wanted, samples: rollouts, retries: 0, harness, session: {} };
    const records = await runTasks({ ...setup, ...(warm > 0 && { warm: pool }) }, batch, signal);
    const bad = records.find(({ verdict }) => verdict?.status !== "graded");
    if (bad) throw new Error(`a rollout failed: ${JSON.stringify(bad.error ?? bad.verdict)}`);
  }
  const took = performance.now() - started;
  await adapter.close();
  await rm(place, { recursive: true });
  return took;
}

answerParent({ run: (options: NoOps) => run(options), done: () => done });
