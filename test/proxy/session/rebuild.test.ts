/** A second proxy over the log of a first one that was killed. */
import assert from "node:assert/strict";
import { appendFile, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { AlidadeError } from "../../../base/errors.ts";
import { rebuildSession } from "../../../proxy/index.ts";
import { DiskStore } from "../../../proxy/store/index.ts";
import { scratchFolder } from "../../fakes/machine/scratch-folder.ts";
import { Client, proxyAt } from "../../fakes/proxies/proxy-at.ts";

const scratch = scratchFolder("rebuild");
const hi = [{ role: "user", content: "hi" }];
let folders = 0;

/** A folder with one session of one delivered call. */
async function killed(): Promise<{ folder: string; sessionId: string; key: string }> {
  const folder = join(scratch, `${folders++}`);
  await using at = await proxyAt(() => ({ text: "first life" }), { store: new DiskStore(folder) });
  const client = await at.open({ purpose: "train" });
  await client.say(hi);
  return { folder, sessionId: client.sessionId, key: client.key };
}

test("a key of a former life works on, and the conversation continues token for token", async () => {
  const { folder, sessionId, key } = await killed();
  await using at = await proxyAt(() => ({ text: "second life" }), { store: new DiskStore(folder), rebuild: true });
  const client = new Client(at.proxy, sessionId, key);
  await client.say([...hi, { role: "assistant", content: "first life" }, { role: "user", content: "more" }]);
  const trajectory = await client.trajectory();
  assert.deepEqual(
    trajectory.calls.map((call) => [call.match, call.outcome, call.ordinal]),
    [
      ["root", "delivered", 0],
      ["exact", "delivered", 1],
    ],
  );
});

test("a turn that was finished and not delivered when the process died is replayed, not sampled again", async () => {
  const { folder, sessionId, key } = await killed();
  const store = new DiskStore(folder);
  const entries = (await store.read(sessionId)).filter((entry) => entry.type !== "answered");
  await writeFile(join(folder, `${sessionId}.jsonl`), `${entries.map((entry) => JSON.stringify(entry)).join("\n")}\n{"type":"answe`);
  await using at = await proxyAt(() => ({ text: "never" }), { store, rebuild: true });
  const client = new Client(at.proxy, sessionId, key);
  assert.equal((await client.say(hi)).content, "first life");
  assert.equal(at.engine.requests.length, 0);
  assert.equal((await client.trajectory()).calls[0]?.outcome, "delivered");
});

test("a call that had only begun is sampled anew as its retry", async () => {
  const { folder, sessionId, key } = await killed();
  const store = new DiskStore(folder);
  const entries = (await store.read(sessionId)).filter((entry) => ["opened", "call_begun"].includes(entry.type));
  await writeFile(join(folder, `${sessionId}.jsonl`), `${entries.map((entry) => JSON.stringify(entry)).join("\n")}\n`);
  await using at = await proxyAt(() => ({ text: "again" }), { store, rebuild: true });
  const client = new Client(at.proxy, sessionId, key);
  assert.equal((await client.say(hi)).content, "again");
  const { calls } = await client.trajectory();
  assert.deepEqual(
    calls.map((call) => call.outcome),
    ["failed", "delivered"],
  );
});

test("a log that a killed process left empty, and one that is damaged, keep no other session from coming back", async () => {
  const { folder, sessionId, key } = await killed();
  await writeFile(join(folder, "sesempty.jsonl"), "");
  await writeFile(join(folder, "sestorn.jsonl"), '{"type":"opened","schema_ver');
  await writeFile(join(folder, "sesdamaged.jsonl"), "");
  await appendFile(join(folder, "sesdamaged.jsonl"), 'not json\n{"type":"sealed","time":1,"reason":"x"}\n');
  await using at = await proxyAt(() => ({ text: "ok" }), { store: new DiskStore(folder), rebuild: true });
  const client = new Client(at.proxy, sessionId, key);
  assert.equal((await client.say([{ role: "user", content: "still here" }])).content, "ok");
  const [reported, ...more] = at.unseen as [string, AlidadeError][];
  assert.deepEqual(more, []);
  assert.ok(reported?.[1] instanceof AlidadeError);
  assert.match(reported[1].message, /sesdamaged\.jsonl line 1 /);
});

test("a damaged line costs its call and never its session: the restarted proxy goes on with it", async () => {
  const types = ["call_begun", "tried", "call_finished", "answered"];
  for (const [index, type] of types.entries()) {
    const { folder, sessionId, key } = await killed();
    const path = join(folder, `${sessionId}.jsonl`);
    const lines = (await readFile(path, "utf8")).trimEnd().split("\n");
    const at = lines.findIndex((line) => line.startsWith(`{"type":"${type}"`));
    lines[at] = index % 2 === 0 ? `${lines[at]?.slice(0, -1)},"odd":1}` : (lines[at]?.slice(0, -2) as string);
    await writeFile(path, `${lines.join("\n")}\n`);
    await using at2 = await proxyAt(() => ({ text: "second life" }), { store: new DiskStore(folder), rebuild: true });
    const client = new Client(at2.proxy, sessionId, key);
    const more = [...hi, { role: "assistant", content: "first life" }, { role: "user", content: "more" }];
    assert.equal((await client.say(more)).content, "second life", type);
    const { calls, fidelity, nodes } = await client.trajectory();
    const [old] = type === "call_begun" ? [] : calls;
    assert.equal(old?.damage === undefined, type === "call_begun", type);
    assert.match(fidelity.damaged[0]?.reason ?? "", new RegExp(`line ${at + 1} is not a record of ours`), type);
    const trained = nodes.filter((node) => node.trainable).map((node) => node.call_id);
    assert.deepEqual([...new Set(trained)], [calls.at(-1)?.call_id], type);
    assert.match(String((at2.unseen[0] as [string, AlidadeError])[0]), /which goes on without it/);
  }
});

test("a session whose sealing line is damaged stays sealed, and takes a late reward", async () => {
  const { folder, sessionId, key } = await killed();
  const path = join(folder, `${sessionId}.jsonl`);
  await appendFile(path, '{"type":"sealed","time":1,"reason":5}\n');
  await using at = await proxyAt(() => ({ text: "never" }), { store: new DiskStore(folder), rebuild: true });
  const response = await new Client(at.proxy, sessionId, key).chat({ messages: hi });
  assert.equal(response.status, 400);
  assert.match(await response.text(), /session_sealed/);
  assert.equal(await at.proxy.reward(sessionId, 1, {}), 1);
  assert.equal((await at.proxy.trajectory(sessionId)).reward, 1);
});

test("the error that a harness was told last in its work is known after a restart too, as is that it got over it", async () => {
  const store = new DiskStore(join(scratch, `${folders++}`));
  await using at = await proxyAt(
    (request) => {
      const asked = JSON.stringify(request.messages);
      if (asked.includes("fail")) return { refuse: { status: 500, message: "boom" } };
      return { text: "partial", ...(asked.includes("cut") && { cutAfter: 3 }) };
    },
    { store },
  );
  const client = await at.open({ budgets: { max_turns: 7 } });
  const titler = [{ role: "system", content: "You are a title generator." }];
  const asked = [
    { content: "fail", code: "engine_error" },
    { content: "fine", code: null },
    { content: "cut", stream: true, code: "engine_error" },
    { content: "fine again", code: null },
    { content: "fail to find a title", system: titler, code: null },
    { content: "fail once more", code: "engine_error" },
    { content: "a title", system: titler, code: "engine_error" },
    { content: "one title too many", system: titler, code: "engine_error" },
    { content: "one too many", code: "budget_spent" },
  ];
  for (const { content, stream = false, system = [], code } of asked) {
    await (await client.chat({ messages: [...system, { role: "user", content }], stream })).text();
    await client.settled();
    const { lastError } = at.proxy.session(client.sessionId).state;
    assert.equal(lastError?.code ?? null, code, content);
    assert.deepEqual((await rebuildSession(store, client.sessionId))?.state.lastError, lastError);
  }
});

test("a sealed session stays sealed, is not held in memory, and its rewards go on counting", async () => {
  const { folder, sessionId, key } = await killed();
  {
    await using at = await proxyAt(() => ({}), { store: new DiskStore(folder), rebuild: true });
    const session = at.proxy.session(sessionId);
    await session.seal("done");
    assert.equal(await session.reward(0, {}), 1);
  }
  await using at = await proxyAt(() => ({}), { store: new DiskStore(folder), rebuild: true });
  const session = at.proxy.session(sessionId);
  assert.deepEqual([session.sealed, session.calls().length], ["done", 0]);
  assert.equal(await session.reward(1, {}), 2);
  assert.equal((await at.proxy.trajectory(sessionId)).reward, 1);
  assert.equal((await new Client(at.proxy, sessionId, key).chat({ messages: hi })).status, 400);
});
