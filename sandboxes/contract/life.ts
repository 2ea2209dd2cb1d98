/** A sandbox from its making to its end: fresh, limited, frozen, kept, gone. */

import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { isIsolated } from "../../base/schema/rollout.ts";
import type { Sandbox } from "../sandbox.ts";
import { inSandbox, ofSandbox, type SandboxCheck, said, specOf } from "./in-sandbox.ts";

export const lifeChecks: readonly SandboxCheck[] = [
  {
    says: "it is ready here, or says why not in a sentence",
    async check(backend, { signal }) {
      assert.equal(await backend.unavailable(signal), null);
    },
  },
  {
    says: "it says in MiB what a sandbox takes and what the machine has, or that this is unknown",
    async check(backend, context) {
      const { limits } = specOf(context);
      for (const room of [backend.takes(limits), await backend.room(context.signal)])
        for (const value of [room.memory_mb, room.disk_mb])
          assert.ok(value === null || value > 0, `memory and disk are numbers above 0 or null: ${JSON.stringify(room)}`);
    },
  },
  ofSandbox("it has an id, and its facts name a backend and how far it is isolated", async ({ id, facts }, { capabilities }) => {
    // A backend around another one may say which one that is.
    assert.ok(id.length > 0 && facts.backend.length > 0, "an id and a name");
    assert.equal(facts.isolation, capabilities.isolation);
    assert.match(facts.isolation, /^(?!shared$)[a-z][a-z0-9-]{0,31}$/, "a word in small letters; `shared` is taken");
  }),
  {
    says: "two sandboxes share no file, and neither finds what an earlier one left",
    check: (backend, context) =>
      inSandbox(backend, context, async (one) => {
        await said(one, 'echo one > mine; echo one > "$HOME/mine"');
        await inSandbox(backend, context, async (other) => {
          assert.equal(await said(other, 'ls -A . "$HOME" | grep mine || true'), "", "it finds files of the other one");
        });
      }),
  },
  {
    says: "one that is released runs no more commands, and nothing of it is left",
    async check(backend, context) {
      let released: Sandbox | null = null;
      await inSandbox(backend, context, async (sandbox) => {
        released = sandbox;
        await said(sandbox, "sleep 600 >/dev/null 2>&1 &");
      });
      await assert.rejects((released as unknown as Sandbox).exec(["true"]), { code: "sandbox_died" });
      const { removed } = await backend.reap({}, context.signal);
      assert.ok(!removed.join("\n").includes(context.run_id), `reap still found: ${removed.join(", ")}`);
    },
  },
  {
    says: "making one ends when its signal fires",
    async check(backend, context) {
      await assert.rejects(backend.create(specOf(context), AbortSignal.abort(new Error("enough"))));
    },
  },
  {
    says: "a workdir that no sandbox can have is refused by name",
    async check(backend, context) {
      for (const workdir of ["/", "relative", "/a/../b"])
        await assert.rejects(backend.create(specOf(context, { workdir }), context.signal), { code: "config_invalid", param: "workdir" });
    },
  },
  ofSandbox("a command that takes more memory than the limit ends, and the result says why", async (sandbox, { capabilities }) => {
    if (!isIsolated(capabilities.isolation)) return;
    const { exit_code, out_of_memory } = await sandbox.exec(["sh", "-c", "x=a; while :; do x=$x$x; done"], { timeout_ms: 60_000 });
    assert.deepEqual([exit_code === 0, out_of_memory], [false, true]);
  }),
  {
    says: "after freeze nothing runs inside, and the files stay",
    check: (backend, context) =>
      inSandbox(backend, context, async (sandbox) => {
        await sandbox.exec(["sh", "-c", "echo 0 > n; (while :; do echo 1 >> n; sleep 0.01; done) >/dev/null 2>&1 &"]);
        await sandbox.freeze();
        const read = async (): Promise<string> => (await sandbox.readFiles("/work")).map(({ content }) => content.toString()).join("");
        const first = await read();
        await sleep(200);
        assert.deepEqual([first.startsWith("0\n"), await read()], [true, first]);
      }),
  },
  {
    says: "a snapshot starts again with all files, or the backend says that it has none",
    check: (backend, context) =>
      inSandbox(backend, context, async (sandbox, spec) => {
        const from = (snapshot: string) => backend.create({ ...spec, snapshot }, context.signal);
        if (!backend.capabilities.snapshot) {
          await assert.rejects(from("any"), { code: "sandbox_unavailable" });
          return;
        }
        const places = ["/work/a/b", "/home/agent/.c", "/tmp/d"];
        const readAll = async (one: Sandbox) => (await one.exec(["cat", ...places])).stdout;
        await sandbox.exec(["sh", "-c", `mkdir a; for place in ${places.join(" ")}; do echo $place > $place; done; ln -s a/b link`]);
        const id = (await sandbox.snapshot?.(context.signal)) ?? "none";
        try {
          await sandbox.exec(["sh", "-c", "echo changed > a/b"]);
          await using second = await from(id);
          assert.equal(await readAll(second), places.map((place) => `${place}\n`).join(""));
          assert.equal((await second.exec(["sh", "-c", "readlink link && echo more >> link && cat a/b"])).stdout, "a/b\n/work/a/b\nmore\n");
          assert.match(await readAll(sandbox), /^changed\n/);
        } finally {
          await backend.removeSnapshot?.(id, context.signal);
        }
        await assert.rejects(from(id), { code: "not_found" });
      }),
  },
  {
    says: "a sandbox that is paused goes on where it stood, and one that runs goes on",
    check: (backend, context) =>
      inSandbox(backend, context, async (sandbox) => {
        if (!backend.capabilities.snapshot) return;
        const count = async () => (await sandbox.readFiles("/work")).map(({ content }) => content.length)[0] ?? 0;
        await sandbox.exec(["sh", "-c", "(while :; do echo 1 >> n; sleep 0.01; done) >/dev/null 2>&1 &"]);
        await sandbox.resume?.();
        await sandbox.pause?.();
        const stood = await count();
        assert.equal(await count(), stood);
        await sandbox.resume?.();
        await sandbox.exec(["sh", "-c", `until [ $(wc -c < n) -gt ${stood} ]; do sleep 0.01; done`], { timeout_ms: 10_000 });
      }),
  },
];
