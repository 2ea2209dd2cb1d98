import assert from "node:assert/strict";
import { test } from "node:test";
import { controlToken, enginesAt } from "../../fakes/proxies/engines-at.ts";
import { pngOf } from "../../fakes/records/png.ts";

const hi = [{ role: "user", content: "hi" }];

const routes: [string, string][] = [
  ["GET", "/health"],
  ["GET", "/metrics"],
  ["GET", "/sessions"],
  ["POST", "/sessions"],
  ["GET", "/sessions/ses1"],
  ["DELETE", "/sessions/ses1"],
  ["POST", "/sessions/ses1/seal"],
  ["POST", "/sessions/ses1/reward"],
  ["GET", "/sessions/ses1/trajectory"],
  ["GET", "/sessions/ses1/screen"],
  ["GET", "/engines"],
  ["POST", "/engines"],
  ["POST", "/engines/a/drain"],
  ["POST", "/engines/a/undrain"],
  ["DELETE", "/engines/a"],
  ["DELETE", "/engines/a?force=true"],
  ["POST", "/pause"],
  ["PUT", "/policy"],
  ["POST", "/resume"],
  ["GET", "/openapi.json"],
  ["GET", "/nothing"],
];

test("no route of the control listener answers without its token, and a session's key is not one", async () => {
  await using at = await enginesAt(() => ({ text: "ok" }), { a: {} });
  const client = await at.open();
  for (const [method, path] of routes)
    for (const authorization of [null, "Bearer wrong", `Bearer ${client.key}`, "Bearer "]) {
      const response = await fetch(at.proxy.controlUrl + path, { method, headers: authorization === null ? {} : { authorization } });
      assert.equal(response.status, 401, `${method} ${path} ${authorization}`);
    }
  assert.equal(at.proxy.pool.slots.length, 1);
  assert.equal(at.proxy.pool.named("a").gate, null);
});

test("the screen of a session is a picture, and the answer for a session without one says so", async () => {
  await using at = await enginesAt(() => ({ text: "ok" }), { a: {} });
  const { session } = await at.proxy.openSession({});
  const headers = { authorization: `Bearer ${controlToken}` };
  const ask = (method: string) => fetch(`${at.proxy.controlUrl}/sessions/${session.id}/screen`, { method, headers });
  const missing = await ask("GET");
  assert.equal(missing.status, 404);
  assert.match(await missing.text(), /its task has no environment.display/);
  const png = pngOf(4, 3);
  session.screen = { frame: async () => png };
  const answer = await ask("GET");
  assert.deepEqual([answer.status, answer.headers.get("content-type")], [200, "image/png"]);
  assert.ok(Buffer.from(await answer.arrayBuffer()).equals(png));
  for (const method of ["POST", "PUT", "DELETE"]) assert.equal((await ask(method)).status, 404, "there is nothing to send to it");
});

test("what is wrong in a body is named by its field", async () => {
  await using at = await enginesAt(() => ({ text: "ok" }), { a: {} });
  const wrong: [string, string, unknown, RegExp][] = [
    ["POST", "/sessions", { purpose: "trian" }, /"param":"purpose"/],
    ["POST", "/sessions", { budgets: { max_turns: 0 } }, /"param":"budgets.max_turns"/],
    ["POST", "/sessions", { budgets: { max_truns: 1 } }, /"param":"budgets.max_truns"/],
    ["POST", "/sessions", { labels: { a: 1 } }, /"param":"labels.a"/],
    ["POST", "/sessions", { sample_index: "3" }, /"param":"sample_index"/],
    ["POST", "/sessions", { policy_mode: "pinned" }, /"param":"policy_mode"/],
    ["POST", "/sessions", { relay: 1 }, /"param":"relay"/],
    [
      "POST",
      "/sessions",
      { relay: "live", sandboxed: true },
      /relay is ..live..: a sandboxed session gets whole answers only.*"param":"relay"/,
    ],
    [
      "POST",
      "/sessions",
      { dialects: ["openai-chatt"] },
      /dialects: ..openai-chatt.. is no dialect; there are: openai-chat,.*"param":"dialects"/,
    ],
    ["POST", "/sessions", { attempt: 0 }, /"param":"attempt"/],
    ["POST", "/sessions", { tasc_id: "t" }, /tasc_id.. is no field of this request; there are: .*task_id, .*"param":"tasc_id"/],
    ["POST", "/sessions", { member: "a b" }, /member is ..a b..: 1 to 64 letters/],
    ["POST", "/sessions", { model: "nope" }, /model is ..nope..: no engine serves it; they serve scripted.*"param":"model"/],
    ["POST", "/sessions", { model: "nope", sandboxed: true }, /model is ..nope..: no engine serves it; they serve scripted/],
    ["POST", "/sessions", { model: "" }, /model is ....: give the name/],
    ["POST", "/sessions", { sampling: { temperature: "x" } }, /sampling.temperature is ..x..: expected number/],
    ["POST", "/sessions", { fetch_images: ["images"] }, /fetch_images.0 is ..images..: give an origin/],
    ["POST", "/sessions", { fetch_images: ["https://a.example/x"] }, /fetch_images.0: give an origin|fetch_images.0 is/],
    ["POST", "/sessions", { fetch_images: ["https://user:secret@a.example"] }, /fetch_images.0: give an origin/],
    ["POST", "/sessions", { allow_fields: [""] }, /allow_fields.0 is ....: give the name/],
    ["PUT", "/policy", { version: "" }, /version is ....: give the trainer's name/],
    ["POST", "/sessions", [], /request_invalid/],
    [
      "POST",
      "/sessions/ses1/reward",
      { reward: 1, scoped_components: [{ scope: "call", target: null, name: "n", value: 1, weight: 1 }] },
      /"param":"scoped_components.0.target"/,
    ],
    ["POST", "/engines", { name: "no spaces", url: "http://127.0.0.1:1" }, /"param":"name"/],
    ["POST", "/engines", { name: "x", url: "ftp://127.0.0.1" }, /"param":"url"/],
    ["POST", "/engines", { name: "x", url: "http://user:hunter2@127.0.0.1" }, /"param":"url"/],
    ["POST", "/engines", { name: "x", url: "http://127.0.0.1/?key=hunter2" }, /"param":"url"/],
    ["POST", "/engines", { name: "x", url: "http://127.0.0.1:1", api_key_env: "NOT_SET_ANYWHERE" }, /"param":"api_key_env"/],
    ["POST", "/pause", { mode: "stop" }, /"param":"mode"/],
    ["POST", "/pause", { timeout_seconds: -1 }, /"param":"timeout_seconds"/],
    ["POST", "/pause", { engines: ["z"] }, /no engine is named \\"z\\"; there are: a/],
    ["PUT", "/policy", { step: 1 }, /"param":"version"/],
    ["PUT", "/policy", { version: "v", fence: "fence0" }, /there is no fence/],
    ["POST", "/resume", {}, /"param":"fence"/],
  ];
  for (const [method, path, body, expected] of wrong) {
    const answer = await at.control(method, path, body);
    assert.ok(answer.status >= 400 && answer.status < 500, `${path} ${JSON.stringify(body)}: ${answer.status}`);
    assert.match(JSON.stringify(answer.body), expected);
    assert.doesNotMatch(JSON.stringify(answer.body), /hunter2/, "a password is never repeated");
  }
});

test("a monitor reads sessions, waiting calls and what each engine does", async () => {
  await using at = await enginesAt(() => ({ text: "ok" }), { a: {}, b: {} });
  await at.open();
  await at.proxy.pool.drain("b", 0, AbortSignal.timeout(60_000));
  const response = await fetch(`${at.proxy.controlUrl}/metrics`, { headers: { authorization: `Bearer ${controlToken}` } });
  assert.match(response.headers.get("content-type") ?? "", /^text\/plain; version=0\.0\.4/);
  const lines = (await response.text()).split("\n");
  for (const line of ["alidade_sessions 1", "alidade_waiting_calls 0", "alidade_fences 0"]) assert.ok(lines.includes(line), line);
  for (const line of ['calls_in_flight{engine="a"} 0', 'healthy{engine="a"} 1', 'draining{engine="a"} 0', 'draining{engine="b"} 1'])
    assert.ok(lines.includes(`alidade_engine_${line}`), line);
});

test("who seals a session that is sealed is told the reason that its log has", async () => {
  await using at = await enginesAt(() => ({ text: "ok" }), { a: {} });
  const client = await at.open();
  for (const reason of ["first", "second"])
    assert.deepEqual((await at.control("POST", `/sessions/${client.sessionId}/seal`, { reason })).body, {
      session_id: client.sessionId,
      sealed: "first",
    });
  assert.deepEqual(
    (await client.entries()).flatMap((entry) => (entry.type === "sealed" ? [entry.reason] : [])),
    ["first"],
  );
});

test("a deleted session is sealed and dropped from memory; its trajectory is read and its late reward written all the same", async () => {
  await using at = await enginesAt(() => ({ text: "ok" }), { a: { policy: { version: "v1", step: 1 } } });
  const minted = await at.control("POST", "/sessions", {
    task_id: "t",
    group_id: "g",
    sample_index: 2,
    purpose: "train",
    labels: { run: "r" },
    sampling: [{ seed: 1 }],
    budgets: { max_turns: 9 },
    relay: "live",
    restore: "full",
    continuity: "off",
    policy_mode: "pin",
  });
  assert.equal(minted.status, 201);
  const { session_id, key } = minted.body as { session_id: string; key: string };
  const chat = (): Promise<Response> =>
    fetch(`${at.proxy.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "scripted", messages: hi }),
    });
  assert.equal((await chat()).status, 200);
  const seen = (await at.control("GET", `/sessions/${session_id}`)).body;
  assert.deepEqual([seen.calls, seen.engine, seen.sealed, seen.pinned], [1, "a", null, { version: "v1", step: 1 }]);
  assert.deepEqual((await at.control("POST", `/sessions/${session_id}/reward`, { reward: 0.5 })).body.revision, 1);
  assert.equal((await at.control("DELETE", `/sessions/${session_id}`)).body.deleted, true);
  assert.equal((await at.control("GET", `/sessions/${session_id}`)).status, 404);
  assert.equal((await chat()).status, 401, "its key is unknown then");
  assert.deepEqual((await at.control("POST", `/sessions/${session_id}/reward`, { reward: 1, components: { tests: 1 } })).body.revision, 2);
  const trajectory = (await at.control("GET", `/sessions/${session_id}/trajectory`)).body;
  assert.deepEqual([trajectory.reward, (trajectory.calls as unknown[]).length], [1, 1]);
  const value = { scope: "agent", target: "main", name: "help", value: null, weight: 0.5 };
  await at.control("POST", `/sessions/${session_id}/reward`, { reward: 1, scoped_components: [value] });
  assert.deepEqual((await at.control("GET", `/sessions/${session_id}/trajectory`)).body.reward_components, [value]);
  assert.equal((await at.control("POST", "/sessions/ses0/reward", { reward: 1 })).status, 404);
});
