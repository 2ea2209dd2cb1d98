/**
 * The gateway of a Polar checkout as a peer: in memory, and with its records on disk. It is started by its own command with a
 * topology of one node; its rollout server is not, for no call passes there.
 */
import { execFileSync, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { modelOf, type Payload } from "./payloads.ts";
import type { Peer } from "./rounds.ts";

/** Python imports its packages from a cold disk. */
const startMs = 120_000;

/** Both, in front of this upstream. `folder`: the checkout, with its `.venv` or with a `python3` that has what it needs. */
export async function polarGateways(folder: string, upstream: string, payload: Payload): Promise<Peer[]> {
  const commit = commitOf(folder);
  return [await start("in memory", false), await start("on disk", true)];

  async function start(where: string, onDisk: boolean): Promise<Peer> {
    const place = await mkdtemp(join(tmpdir(), "alidade-bench-polar-"));
    const port = await freePort();
    await mkdir(join(place, "save"));
    await writeFile(join(place, "topology.yaml"), JSON.stringify(topology(port, upstream, payload, onDisk ? join(place, "save") : null)));
    const own = join(folder, ".venv/bin/python");
    const args = ["-m", "polar.cli", "serve_gateway", "-c", join(place, "topology.yaml"), "--node-id", "bench"];
    const child = spawn(existsSync(own) ? own : "python3", args, {
      cwd: place,
      stdio: ["ignore", "ignore", "inherit"],
      env: { ...process.env, PYTHONPATH: join(folder, "src"), PYTHONDONTWRITEBYTECODE: "1" },
    });
    const url = `http://127.0.0.1:${port}`;
    const peer = {
      name: `Polar ${commit}, ${where}`,
      pid: child.pid ?? 0,
      url,
      sessionHeader: "x-session-id",
      async [Symbol.asyncDispose]() {
        const ended = new Promise((resolve) => child.once("exit", resolve));
        if (child.exitCode === null && child.kill("SIGKILL")) await ended;
        await rm(place, { recursive: true, force: true });
      },
    };
    const end = performance.now() + startMs;
    while (!(await answers(`${url}/health`))) {
      if (child.exitCode === null && performance.now() < end) {
        await sleep(200);
        continue;
      }
      await peer[Symbol.asyncDispose]();
      throw new Error(`the gateway of ${folder} did not start: look at what it printed`);
    }
    return peer;
  }
}

/** JSON is YAML too. */
function topology(port: number, upstream: string, payload: Payload, saveDir: string | null): object {
  const node = {
    ...{ id: "bench", host: "127.0.0.1", port, model_served: modelOf(payload) },
    inference: { engine: "vllm", base_url: upstream },
  };
  return {
    rollout: { host: "127.0.0.1", port: port === 65_535 ? port - 1 : port + 1, ...(saveDir && { save_dir: saveDir }) },
    gateway: { nodes: [node], completion_persistence: { enabled: saveDir !== null } },
  };
}

function commitOf(folder: string): string {
  return execFileSync("git", ["-C", folder, "rev-parse", "--short=8", "HEAD"], { encoding: "utf8" }).trim();
}

async function answers(url: string): Promise<boolean> {
  return fetch(url, { signal: AbortSignal.timeout(2_000) }).then(
    (response) => response.ok,
    () => false,
  );
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}
