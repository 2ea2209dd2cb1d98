/** What a token may take of the service, beside others. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { type ClientRequest, type IncomingMessage, request } from "node:http";
import { type TestContext, test } from "node:test";
import { ServiceClient } from "../../index.ts";
import { ServiceBounds } from "../../service/callers/bounds.ts";
import { until } from "../fakes/machine/until.ts";
import { pythonClient } from "../fakes/processes/python-client.ts";
import { serviceAt, serviceGroups, serviceTask } from "../fakes/proxies/service-at.ts";
import { attemptResult } from "../fakes/records/attempt-result.ts";
import { need } from "../needs.ts";

const forever = new AbortController().signal;
const token = (name: string) => ({ token: name, roles: ["read" as const], namespace: name });
/** Tokens of `serviceAt`. */
const tokens = 7;

/** Sends the headers, and the body by hand. Closed with the test. */
function asked(t: TestContext, url: string, token: string, headers: Record<string, string | number> = {}, method = "GET") {
  const request_ = request(url, { method, headers: { authorization: `Bearer ${token}`, ...headers }, agent: false });
  request_.on("error", () => undefined);
  t.after(() => request_.destroy());
  const answer = once(request_, "response").then(([response]) => response as IncomingMessage);
  answer.catch(() => undefined);
  return { request: request_ as ClientRequest, answer };
}

async function textOf(answer: IncomingMessage): Promise<string> {
  return Buffer.concat(await answer.toArray()).toString("utf8");
}

test("a token has its share of the streams, and none of another's", async (t) => {
  const { url, call, ledger } = await serviceAt(t);
  const set = (await call("PUT", "/sets/a", { samples: 1 })).body.set_id;
  const stream = () => asked(t, `${url}/sets/${set}/results`, "read", { accept: "text/event-stream" });
  const share = Math.floor(100 / tokens);
  const open = Array.from({ length: share }, stream);
  for (const { request, answer } of open) {
    request.end();
    assert.equal((await answer).statusCode, 200);
  }
  const beyond = stream();
  beyond.request.end();
  const refused = await beyond.answer;
  assert.deepEqual([refused.statusCode, refused.headers["retry-after"]], [429, "5"]);
  const { error } = JSON.parse(await textOf(refused));
  assert.deepEqual([error.code, error.param], ["too_many_requests", "event_streams"]);
  assert.match(error.message, new RegExp(`^${share} streams of results are open with this token, which is its share of 100: end one`));

  const other = asked(t, `${url}/sets/${set}/results`, "all", { accept: "text/event-stream" });
  other.request.end();
  assert.equal((await other.answer).statusCode, 200, "another token's share is its own");
  open[0]?.request.destroy();
  await until(async () => {
    const again = stream();
    again.request.end();
    const { statusCode } = await again.answer;
    if (statusCode === 429) again.request.destroy();
    return statusCode === 200;
  });
  assert.equal((await ledger.set(set)).is_over, false);
});

test("a token has its share of the requests that wait, and those that need not wait are answered", async (t) => {
  const { url, call, ledger, lease } = await serviceAt(t);
  const set = (await call("PUT", "/sets/a", { samples: 1 })).body.set_id;
  const share = Math.floor(1_024 / tokens);
  const poll = (wait: number) => {
    const made = asked(t, `${url}/sets/${set}/results?wait=${wait}`, "read");
    made.request.end();
    return made;
  };
  const open = Array.from({ length: share }, () => poll(60));
  let refusal = "";
  await until(async () => {
    const answer = await Promise.race([poll(60).answer, new Promise<null>((resolve) => setTimeout(resolve, 500, null))]);
    refusal = answer?.statusCode === 429 ? await textOf(answer) : "";
    return refusal !== "";
  });
  const { error } = JSON.parse(refusal);
  assert.deepEqual([error.code, error.param], ["too_many_requests", "wait"]);
  assert.match(error.message, /requests of this token wait for results, which is its share of 1024: ask for many results by one/);
  assert.equal((await poll(0).answer).statusCode, 200, "what does not wait is answered");
  assert.equal((await call("GET", `/sets/${set}/results?wait=0.1`)).status, 200, "and so is another token that waits");
  await call("POST", `/sets/${set}/groups`, serviceGroups("g"));
  for (const claim of await ledger.claim(lease, 1)) await ledger.finish(claim, attemptResult());
  for (const { answer } of open) assert.equal((await answer).statusCode, 200);
  assert.equal((await poll(60).answer).statusCode, 200);
});

test("bodies beyond a token's room are not read, and a small one of it and all of others are", async (t) => {
  const { url, call } = await serviceAt(t);
  const set = (await call("PUT", "/sets/a", { samples: 1 })).body.set_id;
  const mebibyte = 1024 * 1024;
  const begin = (token: string) => asked(t, `${url}/sets/${set}/groups`, token, { "content-length": 30 * mebibyte }, "POST");
  const slow = begin("submit");
  // More than the kernel keeps of what is not read.
  await new Promise<unknown>((resolve) => slow.request.write(Buffer.alloc(20 * mebibyte, "\n"), resolve));
  const waits = begin("submit");
  let isRead = false;
  void waits.answer.then(() => {
    isRead = true;
  });
  waits.request.end(Buffer.alloc(30 * mebibyte, "\n"));
  assert.equal((await call("POST", `/sets/${set}/groups`, serviceGroups("small"), "submit")).status, 200);
  const other = begin("all");
  other.request.end(Buffer.alloc(30 * mebibyte, "\n"));
  assert.equal((await other.answer).statusCode, 200, "what another token sends is read");
  assert.equal(isRead, false);
  slow.request.destroy();
  assert.equal((await waits.answer).statusCode, 200, "it is read when there is room");
});

test("what waits for room in vain is refused by name, and one that is alone may have all of it", async () => {
  const bounds = new ServiceBounds(2);
  const [a, b] = [token("a"), token("b")];
  const mebibyte = 1024 * 1024;
  const leave = await bounds.body(a, 64 * mebibyte, forever);
  const left = new AbortController();
  const waiting = bounds.body(a, mebibyte, left.signal);
  const others = await bounds.body(b, 64 * mebibyte, forever);
  left.abort(new Error("it left"));
  await assert.rejects(waiting, /it left/);
  leave();
  leave();
  (await bounds.body(a, 20 * mebibyte, forever))();
  others();
  const hasty = new ServiceBounds(1, 1);
  await hasty.body(a, 64 * mebibyte, forever);
  await assert.rejects(hasty.body(a, mebibyte, forever), { code: "too_many_requests", status: 429, param: "body", retryAfterSeconds: 1 });
  const alone = new ServiceBounds(1);
  const all = await Promise.all([alone.body(a, 32 * mebibyte, forever), alone.body(a, 32 * mebibyte, forever)]);
  for (const end of all) end();
});

test("a client waits for room that it is refused, and sends large tasks in requests of their own", async (t) => {
  const { url, call, listener } = await serviceAt(t);
  await call("PUT", "/sets/a", { samples: 1 });
  const route = listener.routes.find(({ method, path }) => method === "post" && path === "/sets/:id/groups");
  assert.ok(route);
  const { handle } = route;
  const sizes: number[] = [];
  let refusals = 2;
  route.handle = async (asked, caller) => {
    if (refusals-- > 0) throw Object.assign(new Error("no room"), { code: "too_many_requests" });
    sizes.push(asked.lines.length);
    return handle(asked, caller);
  };
  const task = { ...serviceTask, instruction: "x".repeat(3 * 1024 * 1024) };
  const keys = ["g", "h", "i", "j", "k"];
  await using client = ServiceClient.at(url, "all");
  const run = await client.set("a", { samples: 1 });
  assert.equal(await run.submit(keys.map((group_key) => ({ group_key, task }))), 5);
  assert.deepEqual(sizes, [2, 2, 1]);
  if (!(await need(t, "python"))) return;
  refusals = 2;
  const script = `import sys, alidade
run = alidade.Service(sys.argv[1], "all").set("a", samples=1)
task = {"task_id": "t", "instruction": "x" * 3145728, "grader": {"kind": "script", "command": ["true"]}}
print(run.submit((f"p{n}", task) for n in range(5)))`;
  assert.equal((await pythonClient(script, url)).trim(), "5");
  assert.deepEqual(sizes.slice(3), [2, 2, 1]);
});
