/** A service over an engine whose weights the trainers overwrite. */
import { existsSync } from "node:fs";
import { cp, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { taughtBudgets, taughtModel as taughtPolicy, taughtTasks } from "../../../examples/train/taught.ts";
import { startPracticeEngine } from "../../../practice/index.ts";
import { startCli } from "../../fakes/processes/cli.ts";
import { taughtModel } from "../vllm/place.ts";
import { startOwnVllm } from "../vllm/start.ts";

/** `policy`: the folder that vLLM serves. */
export type Rig = AsyncDisposable & { folder: string; policy: string; engine: string };

/** The reward is long: the length of what was said, so that hardly two rollouts of a group have the same. */
const grader = { kind: "script", command: ["sh", "-c", `echo "{\\"reward\\": $(wc -c <answer | awk '{print $1 / 1000}')}"`] };

/** Two tasks that ask for talk, over a vLLM. */
export async function startRig(folder: string, signal: AbortSignal): Promise<Rig> {
  const tasks = [];
  for (const subject of ["sea", "desert"]) {
    const place = join(folder, subject);
    await mkdir(place);
    await writeFile(join(place, "task.yaml"), JSON.stringify({ task_id: subject, instruction: `Tell me about the ${subject}.`, grader }));
    tasks.push(place);
  }
  const harness = { command: [process.execPath, join(import.meta.dirname, "talk.ts"), "{instruction}"] };
  const policy = join(folder, "policy");
  await cp(taughtModel(), policy, { recursive: true });
  return serve({ folder, policy, engine: await startOwnVllm(policy, signal), config: { harness, tasks } });
}

/** The tasks and the policy of `npm run train`, which Pi asks over the embedded engine. */
export async function startTaughtRig(folder: string, signal: AbortSignal): Promise<Rig> {
  const policy = join(folder, "policy");
  await cp(taughtPolicy, policy, { recursive: true });
  const engine = await startPracticeEngine({ weights: policy, model: "taught", seed: 1, signal });
  return serve({ folder, policy, engine, config: { harness: "pi", budgets: taughtBudgets, tasks: taughtTasks } });
}

type Served = { folder: string; policy: string; engine: AsyncDisposable & { url: string }; config: Record<string, unknown> };

async function serve({ folder, policy, engine, config }: Served): Promise<Rig> {
  await using scope = new AsyncDisposableStack();
  scope.use(engine);
  const whole = { engine: { url: engine.url }, sandbox: "process", unsafe_host: true, ...config };
  await writeFile(join(folder, "run.yaml"), JSON.stringify(whole));
  const args = ["service", "-c", "run.yaml", "-p", "0", "--json", "--concurrency", "4", "--polar"];
  const running = scope.use(startCli(args, { cwd: folder }));
  await running.until(() => existsSync(join(folder, "runs/service/service.json")));
  const moved = scope.move();
  return { folder, policy, engine: engine.url, [Symbol.asyncDispose]: () => moved.disposeAsync() };
}

/** The address and the token of its service. */
export async function addressOf({ folder }: Rig): Promise<{ url: string; token: string }> {
  return JSON.parse(await readFile(join(folder, "runs/service/service.json"), "utf8")) as { url: string; token: string };
}
