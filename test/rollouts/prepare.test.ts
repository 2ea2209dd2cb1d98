/** INIT against a backend that stalls: a rollout is held no longer than its task allows. */
import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { pickBackend } from "../../sandboxes/registry.ts";
import type { Sandbox } from "../../sandboxes/sandbox.ts";
import { runner } from "../fakes/rollouts/small-run.ts";
import { writeTask } from "../fakes/rollouts/small-task.ts";

/** The record of a rollout with one second for INIT, whose sandboxes are changed as soon as they are made. */
async function recordWith(t: TestContext, change: (sandbox: Sandbox) => void) {
  const place = await mkdtemp(join(tmpdir(), "alidade-prepare-"));
  t.after(() => rm(place, { recursive: true }));
  const file = join(await writeTask(place, "small"), "task.yaml");
  await writeFile(file, (await readFile(file, "utf8")).replace("limits: {", "limits: { init_seconds: 1,"));
  const { backend } = await pickBackend("process", t.signal);
  const run = await runner(t, place, { path: join(place, "run"), retries: 0 });
  const [record] = await run({
    ...backend,
    create: async (...how) => {
      const sandbox = await backend.create(...how);
      change(sandbox);
      return sandbox;
    },
  });
  return record;
}

const stalled = () => new Promise<never>(() => undefined);

for (const step of ["writeFiles"] as const) {
  test(`${step} that never ends is over with init_seconds, and its sandbox is released`, { timeout: 300_000 }, async (t) => {
    let released = 0;
    const record = await recordWith(t, (sandbox) => {
      const dispose = sandbox[Symbol.asyncDispose].bind(sandbox);
      sandbox[step] = stalled;
      sandbox[Symbol.asyncDispose] = async () => {
        await dispose();
        released++;
      };
    });
    assert.equal(record?.error?.code, "sandbox_unavailable");
    assert.match(record?.error?.message ?? "", /not ready after 1 s/);
    assert.equal(released, 1);
  });
}

test("a sandbox that cannot be released either is left to the reaper", { timeout: 300_000 }, async (t) => {
  const record = await recordWith(t, (sandbox) => {
    const dispose = sandbox[Symbol.asyncDispose].bind(sandbox);
    t.after(dispose);
    t.mock.timers.enable({ apis: ["setTimeout"] });
    sandbox.writeFiles = stalled;
    sandbox[Symbol.asyncDispose] = () => {
      t.mock.timers.tick(10_000);
      t.mock.timers.reset();
      return stalled();
    };
  });
  assert.match(record?.error?.message ?? "", /not ready after 1 s/);
});
