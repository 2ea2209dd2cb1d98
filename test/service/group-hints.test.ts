/** What a webhook is told of a set. */
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import { GroupHints } from "../../service/index.ts";
import type { Claim, SetSpec } from "../../service/ledger/index.ts";
import { until } from "../fakes/machine/until.ts";
import { cli } from "../fakes/processes/cli.ts";
import { serviceAt, serviceGroups } from "../fakes/proxies/service-at.ts";
import { attemptResult } from "../fakes/records/attempt-result.ts";

type Told = { body: string; timestamp: string; signature: string };

/** Answers with `status()`, and keeps what it was told. */
async function receiverAt(t: TestContext, status: () => number = () => 204) {
  const told: Told[] = [];
  const server = createServer(async (request, response) => {
    const body = Buffer.concat(await request.toArray()).toString("utf8");
    const { "alidade-timestamp": timestamp, "alidade-signature": signature } = request.headers;
    told.push({ body, timestamp: String(timestamp), signature: String(signature) });
    response.writeHead(status(), { location: "/elsewhere" }).end();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  return { told, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook` };
}

/** A set with two groups of one, and what a hint of it says. */
async function setAt(t: TestContext, webhook?: string) {
  const service = await serviceAt(t, { setWebhooks: { mayBePrivate: true } });
  const set = (await service.call("PUT", "/sets/a", { samples: 1, webhook })).body.set_id as string;
  await service.call("POST", `/sets/${set}/groups`, serviceGroups("g", "h"));
  const finish = async () => {
    for (const claim of (await service.ledger.claim(service.lease, 1)) as Claim[]) await service.ledger.finish(claim, attemptResult());
  };
  const hint = async (count: number) => {
    const groups = await service.ledger.wholeGroups(set, null, count);
    return JSON.stringify({ set, key: "a", whole_groups: count, cursor: groups.at(-1)?.cursor });
  };
  return { ...service, set, finish, hint };
}

test("a webhook is told of whole groups, signed, and again after it failed", async (t) => {
  let status = 500;
  const { told, url } = await receiverAt(t, () => status);
  const { ledger, finish, hint } = await setAt(t);
  const notes: string[] = [];
  await using _hints = new GroupHints(
    ledger,
    { service: { url, secret: "s3cret", mayBePrivate: true }, sets: null },
    (text) => notes.push(text),
    1,
  );
  await finish();
  await until(() => told.length >= 2);
  status = 302;
  const before = told.length;
  await until(() => told.length > before);
  status = 200;
  await finish();
  const last = await hint(2);
  await until(() => told.at(-1)?.body === last);
  for (const { body, timestamp, signature } of told) {
    assert.equal(signature, `sha256=${createHmac("sha256", "s3cret").update(`${timestamp}.${body}`).digest("hex")}`);
    assert.ok(Math.abs(Date.now() / 1000 - Number(timestamp)) < 600);
  }
  assert.equal(told[0]?.body, await hint(1));
  assert.match(notes.join("\n"), /^the webhook http.* was not told: it answers 500; it is tried again/);
  assert.doesNotMatch(notes.join("\n"), /s3cret/);
});

test("a webhook that never answers holds up no result, and ends with the service", async (t) => {
  const silent = createServer(() => undefined).listen(0, "127.0.0.1");
  await once(silent, "listening");
  t.after(() => silent.closeAllConnections());
  t.after(() => silent.close());
  const url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
  const { ledger, call, set, finish } = await setAt(t);
  const asked = once(silent, "request");
  {
    await using _hints = new GroupHints(ledger, { service: { url, secret: "s", mayBePrivate: true }, sets: null }, () => undefined, 1);
    await finish();
    await asked;
    await finish();
    assert.equal((await call("GET", `/sets/${set}/results?whole_groups=true`)).body.length, 2);
  }
});

test("the webhook of a set is told of that set alone, beside the service's own, and one that hangs delays no other", async (t) => {
  const [own, other] = [await receiverAt(t), await receiverAt(t)];
  const silent = createServer(() => undefined).listen(0, "127.0.0.1");
  await once(silent, "listening");
  t.after(() => silent.closeAllConnections());
  t.after(() => silent.close());
  const { ledger, call, lease, hint } = await setAt(t, `${own.url}?key=word`);
  const how = { secret: "s3cret", mayBePrivate: true };
  const notes: string[] = [];
  const hanging = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
  const b = (await call("PUT", "/sets/b", { samples: 1, webhook: hanging })).body.set_id as string;
  await call("POST", `/sets/${b}/groups`, serviceGroups("g"));
  const asked = once(silent, "request");
  {
    const service = { url: other.url, ...how };
    await using _hints = new GroupHints(ledger, { service, sets: how }, (text) => notes.push(text), 1);
    const claims = await ledger.claim(lease, 9);
    for (const claim of claims) if (claim.set_id === b) await ledger.finish(claim, attemptResult());
    await asked;
    for (const claim of claims) if (claim.set_id !== b) await ledger.finish(claim, attemptResult());
    await until(() => own.told.length > 0 && other.told.length > 1);
  }
  assert.deepEqual(new Set(own.told.map(({ body }) => JSON.parse(body).key)), new Set(["a"]));
  assert.deepEqual(new Set(other.told.map(({ body }) => JSON.parse(body).key)), new Set(["a", "b"]));
  const [{ body, timestamp, signature } = { body: "", timestamp: "", signature: "" }] = own.told;
  assert.equal(signature, `sha256=${createHmac("sha256", "s3cret").update(`${timestamp}.${body}`).digest("hex")}`);
  assert.equal(JSON.parse(await hint(1)).set, JSON.parse(body).set);

  const told = own.told.length;
  {
    await using _hints = new GroupHints(ledger, { service: { url: other.url, ...how }, sets: null }, (text) => notes.push(text), 1);
    const before = other.told.length;
    await call("PUT", "/sets/c", { samples: 1, webhook: own.url });
    const c = (await ledger.sets()).find(({ key }) => key === "c")?.set_id as string;
    await call("POST", `/sets/${c}/groups`, serviceGroups("g"));
    for (const claim of await ledger.claim(lease, 9)) await ledger.finish(claim, attemptResult());
    await until(() => other.told.length > before);
  }
  assert.equal(own.told.length, told, "without the operator's word sets are told nothing");
});

test("webhooks of sets that hang delay neither the service's own nor those of another namespace, however many they are", async (t) => {
  const { told, url } = await receiverAt(t);
  const other = await receiverAt(t);
  let hanging = 0;
  const silent = createServer(() => (hanging += 1)).listen(0, "127.0.0.1");
  await once(silent, "listening");
  t.after(() => silent.closeAllConnections());
  t.after(() => silent.close());
  const { ledger, call, lease } = await setAt(t);
  const how = { secret: "s3cret", mayBePrivate: true };
  await using _hints = new GroupHints(ledger, { service: { url, ...how }, sets: how }, () => undefined, 1);
  const named: string[] = [];
  const begin = async (key: string, webhook: string, token: string) => {
    named.push((await call("PUT", `/sets/${key}`, { samples: 1, webhook }, token)).body.set_id as string);
    await call("POST", `/sets/${named.at(-1)}/groups`, serviceGroups("g"), token);
  };
  for (let at = 0; at < 20; at++) await begin(`named-${at}`, `http://127.0.0.1:${(silent.address() as AddressInfo).port}/${at}`, "team-a");
  await begin("b", other.url, "team-b");
  for (const claim of await ledger.claim(lease, 23)) if (named.includes(claim.set_id)) await ledger.finish(claim, attemptResult());
  await until(() => hanging === 16);
  await until(() => told.length >= 21, { ms: 8_000 });
  await until(() => other.told.length === 1);
});

test("a set's webhook that fails is told again some times, and given up until there are more groups", async (t) => {
  const { told, url } = await receiverAt(t, () => 500);
  const { ledger, finish, hint } = await setAt(t, `${url}?key=word`);
  const notes: string[] = [];
  await using _hints = new GroupHints(ledger, { service: null, sets: { secret: "s", mayBePrivate: true } }, (text) => notes.push(text), 1);
  await finish();
  await until(() => told.length === 8);
  await ledger.putSet("other", (await ledger.sets())[0]?.spec as SetSpec);
  await finish();
  const last = await hint(2);
  await until(() => told.length === 16);
  assert.deepEqual([told[7]?.body === last, told[8]?.body], [false, last]);
  assert.equal(notes.length, 1);
  assert.match(notes[0] ?? "", /^the webhook http:\/\/127\.0\.0\.1:\d+\/hook was not told: it answers 500/, "without what may be a key");
});

test("a set may name a webhook where the operator allows it, at a public address", async (t) => {
  const refused = async (setWebhooks: { mayBePrivate: boolean } | null, webhook: string, why: RegExp) => {
    const { call } = await serviceAt(t, { setWebhooks });
    const { status, body } = await call("PUT", "/sets/a", { webhook });
    assert.deepEqual([status, body.error?.param], [400, "webhook"], webhook);
    assert.match(body.error.message, why);
    assert.doesNotMatch(body.error.message, /me:pass/);
    assert.deepEqual((await call("GET", "/sets")).body.sets, []);
  };
  await refused(null, "https://trainer.example/x", /--allow-set-webhooks/);
  const open = { mayBePrivate: false };
  await refused(open, "http://169.254.169.254/latest", /which is no public address/);
  await refused(open, "http://localhost:8700/sets", /which is no public address/);
  await refused(open, "http://[::ffff:10.0.0.1]/", /which is no public address/);
  await refused(open, "https://me:pass@trainer.example/x", /no http\(s\) address without a password/);
  await refused(open, "file:///etc/passwd", /no http\(s\) address/);
  const { call } = await serviceAt(t, { setWebhooks: open });
  assert.equal((await call("PUT", "/sets/a", { webhook: "https://trainer.example/x" })).status, 200);
  const { code, stderr } = await cli(["service", "--engine", "http://127.0.0.1:1", "--harness", "pi", "--allow-set-webhooks"]);
  assert.deepEqual([code, /--webhook-secret-env is not given/.test(stderr)], [2, true], stderr);
});

test("a webhook at a private address is told nothing unless the operator allows it", async (t) => {
  const { told, url } = await receiverAt(t);
  const { ledger, finish } = await setAt(t);
  const notes: string[] = [];
  await using _hints = new GroupHints(
    ledger,
    { service: { url, secret: "s", mayBePrivate: false }, sets: null },
    (text) => notes.push(text),
    1,
  );
  await finish();
  await until(() => notes.length > 0);
  assert.match(notes[0] ?? "", /not an address of the public internet \(--allow-private-webhook/);
  assert.deepEqual(told, []);
  for (const [args, reason] of [
    [["--webhook", "http://169.254.169.254/x", "--webhook-secret-env", "HOOK"], /--webhook is at 169\.254\.169\.254, which is no public/],
    [["--webhook", "http://[::1]/x", "--webhook-secret-env", "HOOK"], /--webhook is at ::1, which is no public/],
    [["--webhook", "http://0x7f.1/x", "--webhook-secret-env", "HOOK"], /--webhook is at 127\.0\.0\.1, which is no public/],
    [["--webhook", "https://trainer.example/x"], /--webhook-secret-env is not given/],
    [["--webhook", "https://trainer.example/x", "--webhook-secret-env", "UNSET_HOOK"], /--webhook-secret-env is UNSET_HOOK/],
    [["--webhook", "https://me:pass@trainer.example/x", "--webhook-secret-env", "HOOK"], /no http\(s\) address without a password/],
  ] as const) {
    const { code, stderr } = await cli(["service", "--engine", "http://127.0.0.1:1", "--harness", "pi", ...args], { env: { HOOK: "s" } });
    assert.deepEqual([code, reason.test(stderr)], [2, true], stderr);
    assert.doesNotMatch(stderr, /me:pass/);
  }
});
