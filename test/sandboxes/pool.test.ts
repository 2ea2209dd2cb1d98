import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { Pool } from "../../sandboxes/pool.ts";

const signal = AbortSignal.timeout(10_000);

class Thing implements AsyncDisposable {
  static alive = 0;
  static most = 0;
  disposed = false;

  constructor() {
    Thing.alive += 1;
    Thing.most = Math.max(Thing.most, Thing.alive);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    assert.equal(this.disposed, false, "disposed twice");
    this.disposed = true;
    Thing.alive -= 1;
  }
}

function fresh(): void {
  Thing.alive = 0;
  Thing.most = 0;
}

test("never more things exist than max, and everyone gets a turn", async () => {
  fresh();
  await using pool = new Pool({ create: async () => new Thing(), max: 3, prewarm: 2 });
  const served = await Promise.all(
    Array.from({ length: 20 }, async (_, index) => {
      await using lease = await pool.acquire(signal);
      await turn();
      assert.equal(lease.value.disposed, false);
      return index;
    }),
  );
  assert.equal(served.length, 20);
  assert.equal(Thing.most, 3);
});

test("prepared things are handed out first, and made up for", async () => {
  fresh();
  await using pool = new Pool({ create: async () => new Thing(), max: 4, prewarm: 2 });
  await turn();
  assert.deepEqual(pool.counters, { ready: 2, creating: 0, lent: 0, waiting: 0, created: 2, failed: 0 });
  {
    await using _lease = await pool.acquire(signal);
    await turn();
    assert.deepEqual(pool.counters, { ready: 2, creating: 0, lent: 1, waiting: 0, created: 3, failed: 0 });
  }
  assert.equal(pool.counters.lent, 0);
});

test("a body that throws releases its lease", async () => {
  fresh();
  await using pool = new Pool({ create: async () => new Thing(), max: 1 });
  await assert.rejects(async () => {
    await using _lease = await pool.acquire(signal);
    throw new Error("the body failed");
  }, /the body failed/);
  assert.equal(Thing.alive, 0);
  await using lease = await pool.acquire(signal);
  await lease[Symbol.asyncDispose]();
});

test("a creation that fails is the acquirer's error, and its place is free again", async () => {
  fresh();
  let failures = 2;
  const create = async () => {
    if (failures-- > 0) throw new Error("no engine");
    return new Thing();
  };
  await using pool = new Pool({ create, max: 1 });
  await assert.rejects(pool.acquire(signal), /no engine/);
  await assert.rejects(pool.acquire(signal), /no engine/);
  await using _lease = await pool.acquire(signal);
  assert.equal(pool.counters.failed, 2);
});

test("waiting ends with the signal, and the line goes on", async () => {
  fresh();
  await using pool = new Pool({ create: async () => new Thing(), max: 1 });
  const first = await pool.acquire(signal);
  const impatient = new AbortController();
  const waiting = pool.acquire(impatient.signal);
  const patient = pool.acquire(signal);
  impatient.abort(new Error("enough"));
  await assert.rejects(waiting, /enough/);
  await first[Symbol.asyncDispose]();
  await (await patient)[Symbol.asyncDispose]();
  assert.equal(Thing.alive, 0);
});

test("closing disposes of what is prepared and refuses new leases", async () => {
  fresh();
  const pool = new Pool({ create: async () => new Thing(), max: 3, prewarm: 3 });
  await turn();
  await pool[Symbol.asyncDispose]();
  assert.equal(Thing.alive, 0);
  await assert.rejects(pool.acquire(signal), /closed/);
});
