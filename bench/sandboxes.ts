/**
 * Sandboxes against `docker run -d` of the same image, in one run: an empty workdir, and one of 300 MB in 8 000 files. Then
 * what it costs to take three changed files out of the large one. Each pair of timings is taken in turn, so that a busy
 * machine is busy for both; the ratio is the figure.
 *
 *     node --expose-gc bench/sandboxes.ts [rounds]
 */
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { temporaryLayers } from "../base/files/layer.ts";
import { currentOwner } from "../base/host/owner.ts";
import { Task } from "../base/schema/task.ts";
import { takeWork } from "../graders/work/work.ts";
import { ensureBaseImage } from "../sandboxes/docker/images/made/base-image.ts";
import { docker } from "../sandboxes/docker.ts";
import { specOf } from "../sandboxes/task-spec.ts";

const run = promisify(execFile);
const signal = AbortSignal.timeout(1_800_000);
const rounds = Number(process.argv[2] ?? 10);
const owner = { run_id: "bench", owner: await currentOwner() };

const largeFiles = `import os
for n in range(8000):
  os.makedirs(f"/testbed/d{n % 80}", exist_ok=True)
  open(f"/testbed/d{n % 80}/f{n}", "wb").write(os.urandom(37500))`;

async function largeImage(): Promise<string> {
  const image = "alidade/bench-large:1";
  if (await run("docker", ["image", "inspect", image]).catch(() => null)) return image;
  const folder = await mkdtemp(join(tmpdir(), "alidade-bench-"));
  await writeFile(join(folder, "make.py"), largeFiles);
  await writeFile(join(folder, "Dockerfile"), `FROM ${await ensureBaseImage({ signal })}\nCOPY make.py /\nRUN python3 /make.py\n`);
  await run("docker", ["build", "-q", "--network", "none", "-t", image, folder]);
  await rm(folder, { recursive: true });
  return image;
}

function taskOf(image: string | null, workdir: string): Task {
  return Task.parse({
    task_id: "bench",
    instruction: "i",
    environment: { image, workdir },
    grader: { kind: "script", command: ["true"] },
  });
}

async function timed<T>(body: () => Promise<T>): Promise<[number, T]> {
  const started = performance.now();
  const value = await body();
  return [performance.now() - started, value];
}

function median(values: number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

async function createAgainstRun(title: string, task: Task, image: string): Promise<void> {
  const [ours, theirs]: [number[], number[]] = [[], []];
  for (let round = -1; round < rounds; round++) {
    const [create, sandbox] = await timed(() => docker.create(specOf(task, owner), signal));
    await sandbox[Symbol.asyncDispose]();
    const [plain, { stdout }] = await timed(() => run("docker", ["run", "-d", image, "sleep", "infinity"]));
    await run("docker", ["rm", "-f", stdout.trim()]);
    if (round < 0) continue; // the first one looks at the image and gives its workdir away
    ours.push(create);
    theirs.push(plain);
  }
  const ratio = median(ours) / median(theirs);
  console.log(`create, ${title}: ${median(ours).toFixed(0)} ms, docker run -d ${median(theirs).toFixed(0)} ms, ratio ${ratio.toFixed(2)}`);
}

async function takeThree(task: Task): Promise<void> {
  const times: number[] = [];
  const growths: number[] = [];
  for (let round = -1; round < rounds; round++) {
    await using kept = await temporaryLayers();
    await using sandbox = await docker.create(specOf(task, owner), signal);
    await sandbox.exec(["sh", "-c", "for n in 1 2 3; do echo changed >> d$n/f$n; done"]);
    await sandbox.freeze();
    globalThis.gc?.();
    const before = process.memoryUsage().rss;
    let most = before;
    const watch = setInterval(() => {
      most = Math.max(most, process.memoryUsage().rss);
    }, 5);
    const [took, work] = await timed(() => takeWork(sandbox, task, [], kept.folder, signal));
    clearInterval(watch);
    if (work.changes.filter(({ type }) => type === "file").length !== 3) throw new Error("three files were changed");
    if (round < 0) continue;
    times.push(took);
    growths.push((Math.max(most, process.memoryUsage().rss) - before) / 1024 ** 2);
  }
  console.log(
    `take out three files of 8 000: ${median(times).toFixed(0)} ms (most ${Math.max(...times).toFixed(0)}), memory +${median(growths).toFixed(1)} MB (most ${Math.max(...growths).toFixed(1)})`,
  );
}

const base = await ensureBaseImage({ signal });
const large = await largeImage();
await createAgainstRun("empty workdir", taskOf(null, "/work"), base);
await createAgainstRun("300 MB in 8 000 files", taskOf(large, "/testbed"), large);
await takeThree(taskOf(large, "/testbed"));
