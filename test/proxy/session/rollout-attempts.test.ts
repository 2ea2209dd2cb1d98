/** Two sessions of one rollout are two attempts at it or two members of a team, never the same thing twice. */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { DiskStore } from "../../../proxy/store/index.ts";
import { enginesAt } from "../../fakes/proxies/engines-at.ts";
import { FaultyStore } from "../../fakes/records/faulty-store.ts";

const rollout = { task_id: "t", group_id: "g", rollout_id: "r0" };

const serving = (options: Parameters<typeof enginesAt>[2] = {}) => enginesAt(() => ({ text: "ok" }), { a: {} }, options);

test("a second session of one rollout and attempt is a 409 that names the first", async () => {
  await using at = await serving();
  const first = await at.control("POST", "/sessions", { ...rollout, attempt: 1 });
  assert.deepEqual([first.status, first.body.attempt], [201, 1]);
  const second = await at.control("POST", "/sessions", { ...rollout, attempt: 1 });
  assert.equal(second.status, 409);
  assert.match(JSON.stringify(second.body), new RegExp(`rollout r0 has session ${first.body.session_id} for attempt 1.*"param":"attempt"`));
  for (const other of [
    { task_id: "t2" },
    { group_id: "g2" },
    { rollout_id: "r1" },
    { attempt: 2 },
    { member: "coder" },
    { rollout_id: null },
  ])
    assert.equal((await at.control("POST", "/sessions", { ...rollout, attempt: 1, ...other })).status, 201, JSON.stringify(other));
});

test("a session of a rollout that names no attempt is the next one, also where several are asked for at once", async () => {
  await using at = await serving();
  const answers = await Promise.all(Array.from({ length: 8 }, () => at.control("POST", "/sessions", rollout)));
  assert.deepEqual(
    answers.map(({ body }) => body.attempt).toSorted((a, b) => Number(a) - Number(b)),
    [1, 2, 3, 4, 5, 6, 7, 8],
  );
  const explicit = await Promise.all(Array.from({ length: 8 }, () => at.control("POST", "/sessions", { ...rollout, attempt: 9 })));
  assert.equal(explicit.filter(({ status }) => status === 201).length, 1);
});

test("a member joins the last attempt of its team, and begins the next one where it is in that already", async () => {
  await using at = await serving();
  const opened: unknown[] = [];
  for (const member of ["planner", "coder", "coder", "planner", "critic"])
    opened.push([member, (await at.control("POST", "/sessions", { ...rollout, member })).body.attempt]);
  assert.deepEqual(opened, [
    ["planner", 1],
    ["coder", 1],
    ["coder", 2],
    ["planner", 2],
    ["critic", 2],
  ]);
  const lost = await at.control("POST", "/sessions", { member: "coder" });
  assert.deepEqual([lost.status, /"param":"rollout_id"/.test(JSON.stringify(lost.body))], [400, true]);
});

test("which attempts there are is known after a restart, also of sessions that were sealed or deleted", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "alidade-attempts-"));
  t.after(() => rm(folder, { recursive: true }));
  const ids: unknown[] = [];
  {
    await using at = await serving({ store: new DiskStore(folder), rebuild: true });
    for (const [rollout_id, end] of [
      ["open", null],
      ["sealed", ["POST", "/seal"]],
      ["deleted", ["DELETE", ""]],
    ] as const) {
      const { session_id } = (await at.control("POST", "/sessions", { ...rollout, rollout_id })).body;
      ids.push(session_id);
      if (end !== null) await at.control(end[0], `/sessions/${session_id}${end[1]}`);
      assert.equal((await at.control("POST", "/sessions", { ...rollout, rollout_id, attempt: 1 })).status, 409, rollout_id);
    }
  }
  await using at = await serving({ store: new DiskStore(folder), rebuild: true });
  const listed = (await at.control("GET", "/sessions")).body.sessions as { session_id: string }[];
  const opened = await Promise.all(listed.map(async ({ session_id }) => (await at.control("GET", `/sessions/${session_id}`)).body.opened));
  assert.deepEqual(
    opened,
    opened.toSorted((a, b) => Number(a) - Number(b)),
    "in the order of time, not of ids",
  );
  for (const [index, rollout_id] of ["open", "sealed", "deleted"].entries()) {
    const again = await at.control("POST", "/sessions", { ...rollout, rollout_id, attempt: 1 });
    assert.equal(again.status, 409, rollout_id);
    assert.ok(JSON.stringify(again.body).includes(String(ids[index])));
    assert.equal((await at.control("POST", "/sessions", { ...rollout, rollout_id })).body.attempt, 2);
  }
});

test("an attempt that its caller counts has its place until its session is closed", async () => {
  await using at = await serving();
  const counted = () => at.proxy.openSession({ ...rollout, attempt: 1 }, "caller");
  const { session } = await counted();
  await assert.rejects(counted(), /rollout r0 has session .* for attempt 1/);
  assert.equal((await at.control("POST", "/sessions", { ...rollout, attempt: 1 })).status, 409);
  await at.proxy.sessions.close(session, "over");
  await at.proxy.sessions.close((await counted()).session, "over");
});

test("an attempt whose session could not be written down is free again", async () => {
  const store = new FaultyStore();
  await using at = await serving({ store });
  store.full = () => true;
  assert.equal((await at.control("POST", "/sessions", { ...rollout, attempt: 1 })).status, 503);
  store.full = () => false;
  assert.equal((await at.control("POST", "/sessions", { ...rollout, attempt: 1 })).status, 201);
});
