/** Sandboxes made ahead: which ones, how many, how old, and what becomes of those that are not wanted. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { AlidadeError } from "../../base/errors.ts";
import { Environment, Limits } from "../../base/schema/task.ts";
import type { Sandbox, SandboxSpec } from "../../sandboxes/sandbox.ts";
import { WarmPool } from "../../sandboxes/warm-pool.ts";
import { until } from "../fakes/machine/until.ts";

const { signal } = new AbortController();

const specOf = (more: Partial<SandboxSpec> = {}): SandboxSpec => ({
  run_id: "r",
  owner: "1:1",
  image: "i",
  workdir: "/work",
  mounts: {},
  env: {},
  limits: Limits.parse({}),
  ...more,
});

/** A backend that counts; the made ones are numbered from 1. */
class Made {
  readonly specs: SandboxSpec[] = [];
  readonly gone: string[] = [];
  readonly dead = new Set<string>();
  /** While it is set, sandboxes are in the making. */
  hold: Promise<void> | null = null;
  fails = false;

  async create(spec: SandboxSpec): Promise<Sandbox> {
    this.specs.push(spec);
    const id = String(this.specs.length);
    await this.hold;
    if (this.fails) throw new AlidadeError("sandbox_unavailable", "no such image");
    return {
      id,
      isAsNew: async () => !this.dead.has(id),
      [Symbol.asyncDispose]: async () => void this.gone.push(id),
    } as unknown as Sandbox;
  }

  get living(): number {
    return this.specs.length - this.gone.length;
  }
}

const isReady = (pool: WarmPool, count: number) => until(() => pool.counters.ready === count && pool.counters.making === 0);

test("a sandbox that is expected is made ahead and handed out, and each is handed out once", async () => {
  const made = new Made();
  await using pool = new WarmPool(made, { sandboxes: 2, seconds: 60 });
  const [first, second] = [pool.expect(specOf()), pool.expect(specOf())];
  await isReady(pool, 2);
  const [one, other] = [await first.create(specOf(), signal), await second.create(specOf(), signal)];
  assert.deepEqual([one.id, other.id, made.specs.length], ["1", "2", 2]);
  await one[Symbol.asyncDispose]();
  assert.equal((await pool.create(specOf(), signal)).id, "3", "its lease ended it");
});

for (const [field, more] of Object.entries({
  image: { image: "j" },
  limits: { limits: Limits.parse({ memory_mb: 99 }) },
  user: { user: "root" as const },
  writable: { writable: "root" as const },
  mounts: { mounts: { "/opt/x": "/x" } },
  env: { env: { A: "1" } },
  workdir: { workdir: "/else" },
  owner: { owner: "2:2" },
  run_id: { run_id: "s" },
}))
  test(`a sandbox of another ${field} is not handed out`, async () => {
    const made = new Made();
    await using pool = new WarmPool(made, { sandboxes: 1, seconds: 60 });
    using _expected = pool.expect(specOf());
    await isReady(pool, 1);
    assert.deepEqual((await pool.create(specOf(more), signal)).id, "2");
    assert.equal(pool.counters.ready, 1);
  });

test("no more are made than the number says; the next is made when one is handed out, and what is wanted soon comes first", async () => {
  const made = new Made();
  await using pool = new WarmPool(made, { sandboxes: 1, seconds: 60 });
  const first = pool.expect(specOf(), "later");
  using _later = pool.expect(specOf({ image: "later" }), "later");
  using _soon = pool.expect(specOf({ image: "soon" }), "soon");
  await isReady(pool, 1);
  assert.deepEqual([made.specs.map(({ image }) => image), pool.counters.expected], [["i"], 3]);
  await first.create(specOf(), signal);
  await isReady(pool, 1);
  assert.deepEqual(
    made.specs.map(({ image }) => image),
    ["i", "soon"],
  );
});

test("what nothing expects any more is removed, also one that is still in the making", async () => {
  const made = new Made();
  await using pool = new WarmPool(made, { sandboxes: 2, seconds: 60 });
  pool.expect(specOf())[Symbol.dispose]();
  await until(() => made.gone.length === 1);
  let go = (): void => undefined;
  made.hold = new Promise((resolve) => {
    go = resolve;
  });
  const expected = pool.expect(specOf());
  expected[Symbol.dispose]();
  go();
  await until(() => made.gone.length === 2);
  assert.deepEqual([made.living, pool.counters], [0, { ready: 0, making: 0, expected: 0 }]);
});

test("one that grew too old is removed, and made anew while it is expected", async () => {
  const made = new Made();
  await using pool = new WarmPool(made, { sandboxes: 1, seconds: 0.05 });
  using _expected = pool.expect(specOf());
  await until(() => made.specs.length === 2);
  assert.deepEqual(made.gone, ["1"]);
});

test("one that died meanwhile is not handed out", async () => {
  const made = new Made();
  await using pool = new WarmPool(made, { sandboxes: 1, seconds: 60 });
  const expected = pool.expect(specOf());
  await isReady(pool, 1);
  made.dead.add("1");
  assert.equal((await expected.create(specOf(), signal)).id, "2");
  await until(() => made.gone.includes("1"));
});

test("one in the making is waited for, and a wait that is cancelled leaves none behind", async () => {
  const made = new Made();
  let go = (): void => undefined;
  made.hold = new Promise((resolve) => {
    go = resolve;
  });
  await using pool = new WarmPool(made, { sandboxes: 1, seconds: 60 });
  const stop = new AbortController();
  const cancelled = pool.expect(specOf()).create(specOf(), stop.signal);
  stop.abort(new Error("stopped"));
  await assert.rejects(cancelled, /stopped/);
  const waiting = pool.expect(specOf()).create(specOf(), signal);
  go();
  assert.equal((await waiting).id, "2");
  await until(() => made.gone.includes("1"));
});

test("one that cannot be made is no error of the pool: the rollout that makes it itself gets the error, and the pool tries it once", async () => {
  const made = new Made();
  made.fails = true;
  await using pool = new WarmPool(made, { sandboxes: 1, seconds: 60 });
  const expected = pool.expect(specOf());
  await until(() => pool.counters.making === 0);
  assert.equal(made.specs.length, 1);
  await assert.rejects(expected.create(specOf(), signal), { code: "sandbox_unavailable" });
});

test("one that is waited for and cannot be made is the error of the rollout that waits, and is not tried again", async () => {
  const made = new Made();
  let go = (): void => undefined;
  made.hold = new Promise((resolve) => {
    go = resolve;
  });
  made.fails = true;
  await using pool = new WarmPool(made, { sandboxes: 1, seconds: 60 });
  const waiting = pool.expect(specOf()).create(specOf(), signal);
  go();
  await assert.rejects(waiting, { code: "sandbox_unavailable" });
  assert.equal(made.specs.length, 1);
});

test("the end of the pool removes all that were not handed out, and nothing is made after it", async () => {
  const made = new Made();
  const pool = new WarmPool(made, { sandboxes: 3, seconds: 60 });
  const expected = [pool.expect(specOf()), pool.expect(specOf()), pool.expect(specOf())];
  await isReady(pool, 3);
  const taken = await expected[0]?.create(specOf(), signal);
  await pool[Symbol.asyncDispose]();
  assert.deepEqual([made.gone, taken?.id, made.specs.length], [["2", "3"], "1", 3]);
});

test("a sandbox with a service in its own network is not made ahead", async () => {
  const made = new Made();
  await using pool = new WarmPool(made, { sandboxes: 2, seconds: 60 });
  const { services } = Environment.parse({ services: { db: { image: "i" } } });
  using expected = pool.expect(specOf({ services }));
  assert.deepEqual([pool.counters.expected, made.specs.length], [0, 0]);
  assert.equal((await expected.create(specOf({ services }), signal)).id, "1");
});

test("a sandbox whose services are all apart is made ahead with them", async () => {
  const made = new Made();
  await using pool = new WarmPool(made, { sandboxes: 2, seconds: 60 });
  const { services } = Environment.parse({ services: { db: { image: "i", network: "apart" } } });
  using expected = pool.expect(specOf({ services }));
  await isReady(pool, 1);
  assert.equal((await expected.create(specOf({ services }), signal)).id, "1");
  assert.deepEqual(made.specs[0]?.services, services);
});
