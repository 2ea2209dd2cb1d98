/** What a policy leaves behind is its own doing, also where it cannot be graded: a verdict, and never another attempt. */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { AlidadeError, type ErrorCode } from "../../base/errors.ts";
import { readTrajectories } from "../../rollouts/index.ts";
import { pickBackend } from "../../sandboxes/registry.ts";
import type { SandboxBackend } from "../../sandboxes/sandbox.ts";
import { strayErrors } from "../fakes/machine/stray-errors.ts";
import { runner } from "../fakes/rollouts/small-run.ts";
import { solve, writeTask } from "../fakes/rollouts/small-task.ts";

/** A run in which the policy runs one command and says that it is done; with one retry, which none of these may take. */
async function runOf(t: TestContext, command: string, backend?: SandboxBackend, more = "", limits: Record<string, number> = {}) {
  const place = await mkdtemp(join(tmpdir(), "alidade-left-behind-"));
  t.after(() => rm(place, { recursive: true }));
  await writeTask(place, "small", more, limits);
  const path = join(place, "run");
  const reply: typeof solve = (request) => {
    const said = solve(request);
    return said.tool_calls ? { tool_calls: [{ name: "bash", arguments: JSON.stringify({ command }) }] } : said;
  };
  const run = await runner(t, place, { path, retries: 1, reply });
  const records = await run(backend ?? (await pickBackend("process", t.signal)).backend);
  return { records, trajectories: await readTrajectories(path) };
}

async function assertNoOutput(code: ErrorCode, { records, trajectories }: Awaited<ReturnType<typeof runOf>>): Promise<void> {
  assert.deepEqual(
    records.map(({ attempt, verdict, error }) => [attempt, verdict?.status, verdict?.reward, verdict?.error?.code, error?.code]),
    [[1, "no_output", 0, code, code]],
  );
  assert.deepEqual(
    trajectories.map(({ status, reward, in_loss, in_baseline, mask_reason }) => [status, reward, in_loss, in_baseline, mask_reason]),
    [["graded", 0, true, true, null]],
  );
}

for (const [title, code, command] of [
  ["more files than can be graded", "output_too_large", "echo yes > done.txt; seq 20050 | xargs touch"],
  ["a hole after thousands of files", "output_too_large", "echo yes > done.txt; seq 3000 | xargs touch; truncate -s 100G z"],
  ["folders in one another that take minutes to read", "output_too_large", "echo yes > done.txt; mkdir -p $(printf 'd/%.0s' $(seq 1500))"],
  ["no workdir", "output_unreadable", 'rm -rf "$PWD"'],
  ["a link in the workdir's place", "output_unreadable", 'work="$PWD"; cd ..; mv "$work" moved; ln -s moved "$work"'],
  ["a file whose name is no text", "output_unreadable", "seq 3000 | xargs touch; touch \"$(printf 'z\\377')\""],
  ["a link whose target is no text", "output_unreadable", "seq 3000 | xargs touch; ln -s \"$(printf 'a\\377')\" z"],
] as const)
  test(`${title} is no output: reward 0, trained, and not tried again`, { timeout: 300_000 }, async (t) => {
    const stray = strayErrors(t);
    await assertNoOutput(code, await runOf(t, command, undefined, "", { work_files: 20_000 }));
    assert.deepEqual(await stray(), []);
  });

test("an install of tens of thousands of files is a work that is graded, by the default limits", { timeout: 300_000 }, async (t) => {
  const install =
    "for p in $(seq 300); do mkdir -p node_modules/$p/lib/deep; for d in . lib lib/deep; do (cd node_modules/$p/$d; seq 34 | xargs touch); done; done";
  const { records } = await runOf(t, `${install}; echo yes > done.txt`, undefined, "", { agent_seconds: 200, grade_seconds: 200 });
  assert.deepEqual(
    records.map(({ verdict, error }) => [verdict?.reward, error]),
    [[1, null]],
  );
});

test("a policy that takes all of its sandbox's memory, so that the sandbox ends, has no output", { timeout: 300_000 }, async (t) => {
  const { backend } = await pickBackend("process", t.signal);
  const dying: SandboxBackend = {
    ...backend,
    async create(spec, signal) {
      const sandbox = await backend.create(spec, signal);
      const exec = sandbox.exec.bind(sandbox);
      sandbox.exec = async (argv, options) => {
        await exec(argv, options);
        throw new AlidadeError("sandbox_out_of_memory", "The sandbox ran out of memory and ended.");
      };
      return sandbox;
    },
  };
  await assertNoOutput("sandbox_out_of_memory", await runOf(t, "true", dying));
});

test("a sandbox that is gone as a whole is the infrastructure's loss and tried again", { timeout: 300_000 }, async (t) => {
  const { backend } = await pickBackend("process", t.signal);
  let made = 0;
  const losing: SandboxBackend = {
    ...backend,
    async create(spec, signal) {
      const sandbox = await backend.create(spec, signal);
      if (made++ > 0) return sandbox;
      sandbox.freeze = () => rm(join(tmpdir(), sandbox.id, "files"), { recursive: true });
      return sandbox;
    },
  };
  const { records } = await runOf(t, "echo yes > done.txt", losing);
  assert.deepEqual(
    records.map(({ attempt, verdict, error }) => [attempt, verdict?.reward, error]),
    [[2, 1, null]],
  );
});

test("the agent's time ends before its work is graded in its own sandbox", { timeout: 300_000 }, async (t) => {
  const { records } = await runOf(t, "echo yes > done.txt", undefined, "grading: shared\n");
  const [{ times, verdict }] = records as [(typeof records)[0]];
  const { ran = 0, post = 0 } = times;
  assert.deepEqual([verdict?.reward, verdict?.tier, ran > 0 && ran <= post], [1, "T0", true], JSON.stringify(times));
});

test("a sandbox that does not go on for its grading is lost, and tried again", { timeout: 300_000 }, async (t) => {
  const { backend } = await pickBackend("process", t.signal);
  let made = 0;
  const stuck: SandboxBackend = {
    ...backend,
    async create(spec, signal) {
      const sandbox = await backend.create(spec, signal);
      if (made++ === 0) sandbox.resume = () => Promise.reject(new Error("cannot resume"));
      return sandbox;
    },
  };
  const { records } = await runOf(t, "echo yes > done.txt", stuck, "grading: shared\n");
  const said = records.map(({ attempt, verdict }) => [attempt, verdict?.reward, verdict?.error?.code ?? null]);
  assert.deepEqual(said, [[2, 1, null]], JSON.stringify(records.map(({ verdict }) => verdict)));
});
