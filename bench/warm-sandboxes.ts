/**
 * Sandboxes that are made ahead: how fast one is handed out, what an idle one costs, what a command costs by the engine's
 * exec and over one stream to a process inside, and what all of it comes to for rollouts of one call, against a shell
 * loop of `docker run` with as many containers. Then a run is killed in the middle, and what `reap` leaves is counted.
 *
 *     node bench/warm-sandboxes.ts [rollouts] [concurrency] [idle]
 */
import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { currentOwner } from "../base/host/owner.ts";
import { Limits } from "../base/schema/task.ts";
import { dockerClient } from "../sandboxes/docker/client.ts";
import { attach } from "../sandboxes/docker/exec.ts";
import { ensureBaseImage } from "../sandboxes/docker/images/made/base-image.ts";
import { docker } from "../sandboxes/docker.ts";
import type { Sandbox, SandboxSpec } from "../sandboxes/sandbox.ts";
import { type ExpectedSandbox, WarmPool } from "../sandboxes/warm-pool.ts";
import { Child } from "./child.ts";
import { cpuSeconds, quantile, surroundings } from "./measure.ts";
import type { NoOps } from "./sandboxes/no-op-rollouts.ts";

const run = promisify(execFile);
const signal = AbortSignal.timeout(3_600_000);
const [rollouts = 500, concurrency = 16, idle = 200] = process.argv.slice(2).map(Number);
const run_id = `bench${process.pid}`;
const spec: SandboxSpec = {
  run_id,
  owner: await currentOwner(),
  image: null,
  workdir: "/work",
  mounts: {},
  env: {},
  limits: Limits.parse({ memory_mb: 256, disk_mb: 64 }),
};

async function timed<T>(body: () => Promise<T>): Promise<[number, T]> {
  const started = performance.now();
  const value = await body();
  return [performance.now() - started, value];
}

function told(times: number[]): string {
  const sorted = times.toSorted((a, b) => a - b);
  return `${quantile(sorted, 0.5).toFixed(1)} ms (p95 ${quantile(sorted, 0.95).toFixed(1)})`;
}

/** Processes that keep this run's containers: their shims, and the one inside each. The engine itself has others too. */
async function keepers(): Promise<number[]> {
  const { stdout } = await run("docker", ["ps", "-q", "--no-trunc", "--filter", `label=alidade.run=${run_id}`]);
  const ids = stdout.split("\n").filter(Boolean);
  const inside = await run("docker", ["inspect", "-f", "{{.State.Pid}}", ...ids], { maxBuffer: 2 ** 24 });
  const shims = readdirSync("/proc").filter((name) => /^\d+$/.test(name) && ids.includes(shimOf(name)));
  return [...shims, ...inside.stdout.split("\n").filter(Boolean)].map(Number);
}

/** The container whose shim this process is. */
function shimOf(pid: string): string {
  return /containerd-shim.*\0-id\0([0-9a-f]{64})/.exec(text(`/proc/${pid}/cmdline`))?.[1] ?? "none";
}

function text(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return ""; // a process that is gone
  }
}

function megabytes(pid: number): number {
  return Number(/^Pss: +(\d+) kB$/m.exec(text(`/proc/${pid}/smaps_rollup`))?.[1] ?? 0) / 1024;
}

function sum(values: number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

async function warmRows(): Promise<void> {
  await using pool = new WarmPool(docker, { sandboxes: idle, seconds: 3_600 });
  const expected: ExpectedSandbox[] = Array.from({ length: idle }, () => pool.expect(spec));
  while (pool.counters.ready < idle) await sleep(50);
  const pids = await keepers();
  const used = (): number[] => [sum(pids.map((pid) => cpuSeconds(pid) ?? 0)), cpuSeconds(process.pid) ?? 0];
  const [theirs = 0, own = 0] = used();
  const seconds = 10;
  await sleep(seconds * 1000);
  const [theirsNow = 0, ownNow = 0] = used();
  const share = (value: number): string => `${((100 * value) / seconds).toFixed(1)} %`;
  console.log(
    `${idle} idle: ${(sum(pids.map(megabytes)) / idle).toFixed(1)} MB each; ${share(theirsNow - theirs)} of a core together, and ${share(ownNow - own)} for Alidade`,
  );
  const handOuts: number[] = [];
  for (const one of expected.slice(0, 100)) {
    const [took, sandbox] = await timed(() => one.create(spec, signal));
    handOuts.push(took);
    if (handOuts.length === 1) await commands(sandbox);
    await sandbox[Symbol.asyncDispose]();
  }
  console.log(`warm hand-out: ${told(handOuts)} of ${handOuts.length}`);
}

/** The stream is made for this measurement only; ARCHITECTURE says why rollouts have none. */
async function commands(sandbox: Sandbox): Promise<void> {
  const byExec: number[] = [];
  for (let round = 0; round < 20; round++) byExec.push((await timed(() => sandbox.exec(["true"])))[0]);
  const shell = { argv: ["sh"], user: "1000:1000", cwd: "/work", env: {} };
  const opened = performance.now();
  const { stream } = await attach(await dockerClient(), sandbox.id, shell, true);
  const onStream = async (line: string): Promise<number> => {
    const started = performance.now();
    const answered = new Promise((resolve) => stream.once("data", resolve));
    stream.write(`${line}; echo\n`);
    await answered;
    return performance.now() - started;
  };
  await onStream("true");
  const opening = performance.now() - opened;
  const [builtin, forked]: [number[], number[]] = [[], []];
  for (let round = 0; round < 100; round++) {
    builtin.push(await onStream("true"));
    forked.push(await onStream("/bin/true"));
  }
  stream.destroy();
  console.log(
    `a command by exec: ${told(byExec)}; on a stream that takes ${opening.toFixed(0)} ms to open: ${told(forked)}, a builtin ${told(builtin)}`,
  );
}

const noOpFile = join(import.meta.dirname, "sandboxes", "no-op-rollouts.ts");
/** The three take turns, so that a busy machine is busy for all of them. */
const rounds = 5;

async function againstShellLoop(): Promise<void> {
  const image = await ensureBaseImage({ signal });
  const each = Math.ceil(rollouts / rounds);
  const loop = `seq ${2 * each} | xargs -P ${concurrency} -I {} docker run --rm ${image} true`;
  await using child = new Child(noOpFile);
  const noOps = (warm: number): Promise<number> =>
    child.ask("run", { run_id, rollouts: each, concurrency, warm } satisfies NoOps) as Promise<number>;
  const took = { shell: 0, cold: 0, warm: 0 };
  for (let round = 0; round < rounds; round++) {
    took.shell += (await timed(() => run("sh", ["-c", loop])))[0];
    took.cold += await noOps(0);
    took.warm += await noOps(concurrency);
  }
  const row = (name: string, milliseconds: number): void =>
    console.log(`${name}: ${(milliseconds / 1000).toFixed(1)} s, ${(took.shell / milliseconds).toFixed(2)} × the loop's rate`);
  row(`docker run --rm, ${2 * each * rounds} times, ${concurrency} at once`, took.shell);
  row(`${each * rounds} rollouts, ${concurrency} at once, each sandbox made when it is asked for`, took.cold);
  row(`the same, ${concurrency} warm`, took.warm);
}

/** Containers and volumes of this run. */
async function left(): Promise<number> {
  const label = `label=alidade.run=${run_id}`;
  const listed = [
    ["ps", "-aq"],
    ["volume", "ls", "-q"],
  ].map((words) => run("docker", [...words, "--filter", label]));
  return (await Promise.all(listed)).flatMap(({ stdout }) => stdout.split("\n").filter(Boolean)).length;
}

async function killedInTheMiddle(): Promise<void> {
  const child = new Child(noOpFile);
  const over = child.ask("run", { run_id, rollouts, concurrency, warm: concurrency }).catch(() => null);
  while ((await child.ask<number>("done")) < Math.min(rollouts / 2, 50)) await sleep(20);
  process.kill(child.pid, "SIGKILL");
  await over;
  const before = await left();
  // What the engine was still making when its client was killed is there by then.
  await sleep(2_000);
  const [took] = await timed(() => docker.reap({}, signal));
  console.log(
    `killed in the middle: ${before} containers and volumes were left, ${await left()} after reap (${(took / 1000).toFixed(1)} s)`,
  );
}

const { machine, node, commit, load } = surroundings();
console.log(`${machine}; Node ${node}; ${commit}; load ${load.toFixed(1)}`);
await docker.prepare([], { signal });
await ensureBaseImage({ signal });
await (await docker.create(spec, signal))[Symbol.asyncDispose]();
await warmRows();
await againstShellLoop();
await killedInTheMiddle();
