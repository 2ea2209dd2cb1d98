/** What becomes of a task's image before its sandboxes are made, at a real engine. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, test } from "node:test";
import { promisify } from "node:util";
import { currentOwner } from "../../host/owner.ts";
import { ensureBaseImage } from "../../sandboxes/docker/base-image.ts";
import { docker } from "../../sandboxes/docker.ts";
import { specOf } from "../../sandboxes/task-spec.ts";
import { Environment, Limits } from "../../schema/task.ts";
import { scratchFolder } from "../fakes/machine/scratch-folder.ts";
import { need } from "../needs.ts";

const signal = AbortSignal.timeout(240_000);
const scratch = scratchFolder("images");
const owner = { run_id: "images", owner: await currentOwner() };
const limits = Limits.parse({ memory_mb: 128, disk_mb: 64 });

const made = new Set<string>();
after(async () => {
  for (const image of made) await promisify(execFile)("docker", ["rmi", image]).catch(() => {});
});

const sandboxOf = (environment: Environment) => docker.create(specOf({ environment, limits }, owner), signal);

async function buildOf(name: string, lines: string, files: Record<string, string> = {}): Promise<Environment> {
  const context = join(scratch, name);
  await mkdir(context, { recursive: true });
  const base = await ensureBaseImage({ signal });
  for (const [path, content] of Object.entries({ Dockerfile: `FROM ${base}\n${lines}\n`, ...files }))
    await writeFile(join(context, path), content);
  return Environment.parse({ build: { context, args: { GREETING: "hello" } }, workdir: "/made" });
}

test("a task's build is made once by content hash; one that fails is typed, with the end of its output, and others go on", {
  timeout: 120_000,
}, async (t) => {
  if (!(await need(t, "docker"))) return;
  const lines = `ARG GREETING\nCOPY a.txt /made/\nRUN echo $GREETING >> /made/a.txt\nLABEL made.by=${process.pid}`;
  const good = await buildOf("good", lines, { "a.txt": "a\n" });
  const bad = await buildOf("bad", "RUN echo the compiler says this; exit 3");
  const heredoc = await buildOf("heredoc", "RUN <<EOF\nexit 4\nEOF");
  const said: string[] = [];
  await docker.prepare([good, good, bad, heredoc], { signal, progress: (line) => said.push(line) });
  assert.equal(said.filter((line) => line.startsWith("Building")).length, 3, said.join("\n"));
  await using sandbox = await sandboxOf(good);
  made.add(sandbox.facts.image ?? "");
  assert.equal((await sandbox.exec(["cat", "a.txt"])).stdout, "a\nhello\n");
  assert.match(sandbox.facts.image ?? "", /^alidade\/built:[0-9a-f]{16}$/);
  assert.equal(sandbox.facts.image_repo_digest, null);
  const failure = { code: "image_build_failed", param: "environment.build" };
  await assert.rejects(sandboxOf(bad), { ...failure, message: /exit code: 3.*The end of its output:\n.*the compiler says this/s });
  await assert.rejects(sandboxOf(heredoc), { ...failure, message: /heredoc/ });
  const again: string[] = [];
  await docker.prepare([good], { signal, progress: (line) => again.push(line) });
  assert.deepEqual(again, []);
});
