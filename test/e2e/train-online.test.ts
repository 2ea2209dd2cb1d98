/**
 * The examples of docs/train-online.md as they stand: real trainers, a real `alidade service`, the unmodified Pi and a vLLM whose
 * weights are reloaded behind the fence. Each batch is sampled by the weights that train on it, token for token.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, cp, mkdir, readFile, writeFile } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { type TestContext, test } from "node:test";
import { z } from "zod";
import { pi } from "../../harnesses/pi.ts";
import { scratchFolder } from "../fakes/machine/scratch-folder.ts";
import { root, startCli } from "../fakes/processes/cli.ts";
import { installedPack } from "../harness/installed-pack.ts";
import { consumerScripts, consumersPlace } from "../interop/consumers/place.ts";
import { taughtModel } from "../interop/vllm/place.ts";
import { taughtTask } from "../interop/vllm/plays.ts";
import { startOwnVllm } from "../interop/vllm/start.ts";
import { need } from "../needs.ts";

const scratch = scratchFolder("train-online");
const examples = join(root, "clients/python/examples");
/** Sampled by vLLM, computed again by transformers, both in float32. */
const tolerance = 1e-4;
const samples = 4;
const steps = 2;

/** GET of the service. */
type Call = (path: string) => Promise<string>;

const Said = z.strictObject({
  step: z.number(),
  reward: z.number(),
  worst: z.number(),
  tokens: z.number(),
  policies: z.array(z.string()).optional(),
});
const Line = z.looseObject({
  results: z.array(z.looseObject({ index: z.number(), policies: z.array(z.looseObject({ version: z.string() })) })),
  rows: z.array(z.unknown()),
});
const FlatRow = z.looseObject({
  trained_tokens: z.number(),
  in_baseline: z.boolean(),
  reward: z.number().nullable(),
  segments: z.array(z.looseObject({ kind: z.string(), policy_version: z.string().nullable() })),
});
const TrlRow = z.looseObject({ env_mask: z.array(z.number()) });

test("PyTorch and TRL train on what their own weights sampled, after each reload", { timeout: 900_000 }, async (t) => {
  for (const one of ["vllm", "consumers"] as const) if (!(await need(t, one))) return;
  if ((await installedPack(t, pi)) === null) return;
  const policy = join(scratch, "policy");
  await cp(taughtModel(), policy, { recursive: true });
  await using vllm = await startOwnVllm(policy, t.signal);
  await using service = await serviceAt(vllm.url);
  const asked = ["--policy", policy, "--engine", vllm.url, "--task", "walk", "--samples", `${samples}`, "--rate", "3e-4"];

  await t.test("grpo_torch.py goes on from its checkpoint", async (t) => {
    const script = [join(examples, "grpo_torch.py"), ...asked, "--epochs", "2", "--steps"];
    const said = [...(await python(t, [...script, "1"])), ...(await python(t, [...script, `${steps}`]))];
    for (const { policies, step } of said) assert.deepEqual(policies, [`step-${step}`]);
    await judge(t, service.call, "grpo-torch", said);
  });

  await t.test("grpo_trl.py asks by rollout_func", async (t) => {
    // From the beginning: a policy that went wrong has long sessions.
    await cp(join(taughtModel(), "model.safetensors"), join(policy, "model.safetensors"));
    const said = await python(t, [join(consumerScripts, "train_online.py"), ...asked, "--steps", `${steps}`]);
    await judge(t, service.call, "grpo-trl", said);
  });
});

/** What the trainer says of itself, against what the service has. */
async function judge(t: TestContext, call: Call, set: "grpo-torch" | "grpo-trl", said: z.infer<typeof Said>[]): Promise<void> {
  for (const one of said) t.diagnostic(JSON.stringify(one));
  assert.deepEqual(
    said.map(({ step }) => step),
    range(steps),
  );
  for (const { worst, step } of said) assert.ok(worst <= tolerance, `step ${step}: ${worst} is more than ${tolerance}`);
  const { sets } = JSON.parse(await call("/sets")) as { sets: { set_id: string; key: string; rollouts: Record<string, number> }[] };
  const { set_id, rollouts = {} } = sets.find(({ key }) => key === set) ?? {};
  assert.equal((rollouts.completed ?? 0) + (rollouts.failed ?? 0), samples * steps, JSON.stringify(rollouts));
  const lines = async (format: string) => {
    const text = await call(`/sets/${set_id}/results?whole_groups=true&payload=rows&format=${format}`);
    return text
      .trim()
      .split("\n")
      .map((line) => Line.parse(JSON.parse(line)));
  };
  const [flat, own] = [await lines("flat"), set === "grpo-trl" ? (await lines("trl-grpo")).map(maskOf) : null];
  assert.equal(flat.length, steps);
  for (const [step, { results, rows }] of flat.entries()) {
    assert.deepEqual(
      results.map(({ index }) => index),
      range(samples),
    );
    const read = rows.map((row) => FlatRow.parse(row));
    const sampled = read.flatMap(({ segments }) => segments.filter(({ kind }) => kind === "sampled"));
    const versions = results.flatMap(({ policies }) => policies.map(({ version }) => version));
    assert.deepEqual([...new Set([...versions, ...sampled.map((one) => one.policy_version)])], [`step-${step}`]);
    const measured = read.filter(({ in_baseline, reward }) => in_baseline && reward !== null);
    const trained = own?.[step] ?? measured.reduce((sum, { trained_tokens }) => sum + trained_tokens, 0);
    assert.ok(trained > 0);
    assert.equal(said[step]?.tokens, trained, "the trainer trains other tokens than the service gave");
  }
}

/** TRL knows one row a rollout. */
function maskOf({ rows }: z.infer<typeof Line>): number {
  return rows.flatMap((row) => TrlRow.parse(row).env_mask).reduce((sum, mask) => sum + mask, 0);
}

const range = (length: number): number[] => Array.from({ length }, (_, at) => at);

/** The lines of JSON that the script prints. */
async function python(t: TestContext, argv: string[]): Promise<z.infer<typeof Said>[]> {
  const env = {
    ...process.env,
    PYTHONPATH: [join(root, "clients/python"), examples, consumerScripts].join(delimiter),
    PYTHONDONTWRITEBYTECODE: "1",
    CUDA_VISIBLE_DEVICES: "",
    HF_HUB_OFFLINE: "1",
    OMP_NUM_THREADS: "1",
    TORCH_COMPILE_DISABLE: "1",
    TRL_EXPERIMENTAL_SILENCE: "1",
  };
  const child = spawn(join(consumersPlace(), "venv/bin/python"), ["-W", "ignore", ...argv], {
    cwd: scratch,
    env,
    signal: t.signal,
    killSignal: "SIGKILL",
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [out, err]: [string[], string[]] = [[], []];
  child.stdout.setEncoding("utf8").on("data", (text: string) => void out.push(text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => void err.push(text));
  const [code] = await once(child, "close");
  assert.equal(code, 0, `${argv[0]} ended with ${code}: ${out.join("").slice(-2_000)}${err.join("").slice(-6_000)}`);
  const lines = out.join("").split("\n");
  return lines.filter((line) => line.startsWith('{"')).map((line) => Said.parse(JSON.parse(line)));
}

/** One step, by either program, and the reward is for `walk`: the model takes it about every third time. */
async function serviceAt(engine: string): Promise<AsyncDisposable & { call: Call }> {
  const { instruction, files, programs } = taughtTask("pi", 1);
  const place = join(scratch, "walk");
  await mkdir(join(place, "files"), { recursive: true });
  for (const [name, text] of Object.entries(files)) {
    const isProgram = programs.includes(name);
    await writeFile(join(place, "files", name), isProgram ? text.replace("\n", `\necho ${name} >>taken\n`) : text);
    if (isProgram) await chmod(join(place, "files", name), 0o755);
  }
  const command = `[ "$(head -n 1 taken)" = walk ] && echo '{"reward": 1}' || echo '{"reward": 0}'`;
  const grader = { kind: "script", command: ["sh", "-c", command] };
  const task = { task_id: "walk", instruction, environment: { files: "files" }, grader };
  await writeFile(join(place, "task.yaml"), JSON.stringify(task));
  const config = { engine: { url: engine }, harness: "pi", sandbox: "process", unsafe_host: true, tasks: [place] };
  await writeFile(join(scratch, "run.yaml"), JSON.stringify(config));
  const running = startCli(["service", "-c", "run.yaml", "-p", "0", "--json", "--concurrency", "4"], { cwd: scratch });
  await running.until(() => running.stdout.includes("\n"));
  const { url, token } = JSON.parse(await readFile(join(scratch, "runs/service/service.json"), "utf8")) as { url: string; token: string };
  const call = async (path: string) => (await fetch(url + path, { headers: { authorization: `Bearer ${token}` } })).text();
  return { call, [Symbol.asyncDispose]: () => running[Symbol.asyncDispose]() };
}
