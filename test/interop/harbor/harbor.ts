/** Harbor itself, as install.sh puts it below the cache: runs task folders with its oracle, or with its agent that does nothing. */
import { execFile } from "node:child_process";
import { glob, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { z } from "zod";
import { readFolder, type TreeFile } from "../../../base/files/file-tree.ts";
import { cachePlace, hashOf, isReady } from "../place.ts";

/** Holds `venv/` and `docker/`, a configuration of the Docker command with its plug-ins; ready when it holds the file `ready`. */
function harborPlace(): string {
  return cachePlace("harbor", hashOf(import.meta.dirname, ["requirements.txt", "install.sh"]));
}

/** null when Harbor is installed, otherwise why not. */
export async function harborMissing(): Promise<string | null> {
  return isReady(harborPlace()) ? null : "Harbor of the pinned versions is not installed";
}

const Trial = z.looseObject({
  started_at: z.string(),
  finished_at: z.string(),
  verifier_result: z.looseObject({ rewards: z.record(z.string(), z.number()).nullable() }).nullable(),
  exception_info: z.looseObject({ exception_type: z.string() }).nullable(),
});

export type HarborTrial = {
  /** Folder of the task. */
  task: string;
  rewards: Record<string, number> | null;
  exception: string | null;
  seconds: number;
  /** What its verifier left in /logs/verifier. */
  logs: TreeFile[];
};

export type HarborJob = {
  /** A folder of task folders. */
  tasks: string;
  agent: "oracle" | "nop";
  /** Trials at once; default: 1. */
  atOnce?: number;
  /** Whether containers are stopped at once, and not after the ten seconds that `docker compose stop` waits. */
  quickStop?: boolean;
};

const noGrace = "services:\n  main:\n    stop_grace_period: 0s\n";

/** One trial of each task, in the order of their folders' names. Rejects with what Harbor printed where there are none. */
export async function runHarbor({ tasks, agent, atOnce = 1, quickStop = false }: HarborJob, signal: AbortSignal): Promise<HarborTrial[]> {
  const place = await mkdtemp(join(tmpdir(), "alidade-harbor-"));
  await using _removed = { [Symbol.asyncDispose]: () => rm(place, { recursive: true, force: true }) };
  await writeFile(join(place, "no-grace.yaml"), noGrace);
  const names = ["--jobs-dir", join(place, "jobs"), "--job-name", agent, "-p", tasks, "-a", agent, "-n", `${atOnce}`, "-y", "-q"];
  const more = quickStop ? ["--extra-docker-compose", join(place, "no-grace.yaml")] : [];
  const env = { ...process.env, DOCKER_CONFIG: join(harborPlace(), "docker"), HARBOR_TELEMETRY: "0", COLUMNS: "200" };
  const { stdout, stderr } = await promisify(execFile)(join(harborPlace(), "venv/bin/harbor"), ["run", ...names, ...more], {
    env,
    cwd: place,
    signal,
    maxBuffer: 64 * 1024 * 1024,
  });
  const files = await Array.fromAsync(glob(join(place, "jobs", agent, "*", "result.json")));
  if (files.length === 0) throw new Error(`Harbor left no trial: ${stdout.slice(-2_000)}${stderr.slice(-2_000)}`);
  return Promise.all(files.sort().map(trialAt));
}

async function trialAt(file: string): Promise<HarborTrial> {
  const text = await readFile(file, "utf8");
  const { started_at, finished_at, verifier_result, exception_info } = Trial.parse(JSON.parse(text));
  const { task_id } = z.looseObject({ task_id: z.looseObject({ path: z.string() }) }).parse(JSON.parse(text));
  return {
    task: task_id.path.split("/").at(-1) ?? "",
    rewards: verifier_result?.rewards ?? null,
    exception: exception_info?.exception_type ?? null,
    seconds: (Date.parse(finished_at) - Date.parse(started_at)) / 1_000,
    logs: await readFolder(join(dirname(file), "verifier")).catch(() => []),
  };
}
