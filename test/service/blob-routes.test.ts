/** Trajectories that nodes send to the service, where both share no disk. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { getPacked, openBlobs, putPacked } from "../../service/blobs/index.ts";
import { until } from "../fakes/machine/until.ts";
import { serviceAt } from "../fakes/proxies/service-at.ts";

const at = (url: string, token: string) => openBlobs(url, { ALIDADE_SERVICE_TOKEN: token });
const record = { ids: [1, 2, 3], text: "ü".repeat(100_000) };

test("a record that a node sends lies in the service's own place, whole, and may be sent twice", async (t) => {
  const { url, blobs } = await serviceAt(t);
  const sent = await putPacked(at(`${url}/`, "node"), "set1/roll1/1", record);
  assert.deepEqual(await putPacked(at(url, "node"), "set1/roll1/1", record), sent);
  assert.deepEqual(JSON.parse(await getPacked(blobs, sent)), record);
});

test("a node reads which ledger the place belongs to, and no trajectory of others", async (t) => {
  const { url, blobs } = await serviceAt(t);
  const remote = at(url, "node");
  assert.equal(await remote.get("ledger.id"), null);
  await blobs.put("ledger.id", Buffer.from("ledger7"));
  assert.equal((await remote.get("ledger.id"))?.toString(), "ledger7");
  const { key } = await putPacked(remote, "set1/roll1/1", record);
  assert.equal(await remote.get(key), null);
});

test("a node keeps parts of a session's log there, another node reads them, and they are removed together", async (t) => {
  const { url, blobs } = await serviceAt(t);
  const [one, two] = [at(url, "node"), at(url, "node")];
  const keys = ["set1/roll1/logs/1-1.json.zst", "set1/roll1/logs/2-1.json.zst"];
  const later = "set1/roll1/logs/10-1.json.zst";
  await one.put(later, Buffer.from(later));
  for (const key of keys) await one.put(key, Buffer.from(key));
  for (const key of keys) assert.equal((await two.get(key))?.toString(), key);
  assert.equal((await blobs.get(keys[0] ?? ""))?.toString(), keys[0]);
  const kept = await putPacked(one, "set1/roll1/1", record);
  await two.removeLogs("set1/roll1", 2);
  await two.removeLogs("set1/none", 2);
  for (const key of keys) assert.equal(await two.get(key), null);
  assert.equal((await two.get(later))?.toString(), later, "another node may be at work on a later attempt");
  assert.deepEqual(JSON.parse(await getPacked(blobs, kept)), record, "the trajectory stays");
  const ask = async (method: string, path: string, token: string) =>
    (await fetch(`${url}/blobs/${path}`, { method, headers: { authorization: `Bearer ${token}` } })).status;
  for (const path of ["set1/roll1/logs/x.json.zst", "set1/roll1/logs/1-1.txt"]) assert.equal(await ask("GET", path, "node"), 400);
  assert.equal(await ask("GET", keys[0] ?? "", "read"), 403);
  assert.equal(await ask("DELETE", "set1/roll1/logs/1", "submit"), 403);
  assert.equal(await ask("DELETE", "set1/roll1/logs", "node"), 404);
  for (const attempt of ["x", "-1", "1x", "1e9"]) assert.equal(await ask("DELETE", `set1/roll1/logs/${attempt}`, "node"), 400);
  assert.equal(await ask("DELETE", "set1/roll1", "node"), 404);
});

test("log parts that are read at once take bounded memory, and further reads wait", async (t) => {
  const { url, blobs } = await serviceAt(t);
  const go = Promise.withResolvers<void>();
  let inside = 0;
  Object.assign(blobs, {
    get: async (key: string) => {
      if (key !== "ledger.id") inside += 1;
      if (key !== "ledger.id") await go.promise;
      return Buffer.from(key);
    },
  });
  const node = at(url, "node");
  const reads = Array.from({ length: 6 }, (_, part) => node.get(`set1/roll1/logs/1-${part + 1}.json.zst`));
  await until(() => inside >= 2);
  await node.get("ledger.id");
  assert.equal(inside, 2, "of 64 MiB a token has half, and a part is counted as 16");
  go.resolve();
  assert.equal((await Promise.all(reads)).length, 6);
});

test("bytes that are not those of their name, a name that leads elsewhere and a token without the role are refused", async (t) => {
  const { url, blobs } = await serviceAt(t);
  const kept = await putPacked(blobs, "set1/roll1/1", record);
  const put = async (path: string, token = "node") => {
    const answer = await fetch(`${url}/blobs/${path}`, { method: "PUT", headers: { authorization: `Bearer ${token}` }, body: "other" });
    return [answer.status, ((await answer.json()) as { error: { code: string } }).error.code];
  };
  assert.deepEqual(await put(kept.key), [400, "request_invalid"]);
  assert.deepEqual(JSON.parse(await getPacked(blobs, kept)), record);
  assert.deepEqual(await put("a/b/..%2f..%2fc.json.zst"), [400, "request_invalid"]);
  assert.deepEqual(await put("a/%2e%2e/c.json.zst"), [404, "not_found"]);
  assert.deepEqual(await put("ledger.id"), [404, "not_found"]);
  for (const token of ["submit", "read", "control"]) {
    assert.deepEqual(await put(kept.key, token), [403, "unauthorized"]);
    await assert.rejects(at(url, token).get("ledger.id"), { code: "config_invalid", message: /--trajectories: .*has not the role node/ });
  }
});

test("a service that is away is waited for, until the node is stopped", async () => {
  const { url, answers, close } = await brokenService([503, 429, 201]);
  const sent = await putPacked(at(url, "node"), "set1/roll1/1", record);
  assert.deepEqual(answers, []);
  assert.ok(sent.bytes > 0);
  close();
  const stop = new AbortController();
  const waiting = putPacked(at(url, "node"), "set1/roll1/2", record, stop.signal);
  stop.abort(new Error("the node was stopped"));
  await assert.rejects(waiting, /stopped|aborted/);
});

test("a node that can wait for a copy asks a service that is away more often than a person would, until it is stopped", async (t) => {
  // More refusals than a plain reader waits for.
  const { url, close } = await brokenService([503, 503, 503, 503, 503, 404]);
  t.after(close);
  const stop = new AbortController();
  const read = () => at(url, "node").get("set1/roll1/logs/1-1.json.zst", stop.signal);
  assert.equal(await read(), null);
  const reading = read();
  stop.abort(new Error("the node was stopped"));
  await assert.rejects(reading, /stopped|aborted/);
});

test("a service waits no longer for its own place than the node does", async (t) => {
  const { url, blobs } = await serviceAt(t);
  const begun = Promise.withResolvers<AbortSignal>();
  const put = (_key: string, _pieces: AsyncIterable<Uint8Array>, signal: AbortSignal) => {
    begun.resolve(signal);
    return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  };
  Object.assign(blobs, { putPieces: put });
  const stop = new AbortController();
  const waiting = putPacked(at(url, "node"), "set1/roll1/1", record, stop.signal);
  const signal = await begun.promise;
  assert.equal(signal.aborted, false);
  stop.abort(new Error("the node was stopped"));
  await assert.rejects(waiting, /stopped|aborted/);
  await until(() => signal.aborted);
});

test("a trajectory is taken as fast as its place keeps it, and is never in memory whole", async (t) => {
  const { url, blobs } = await serviceAt(t);
  const [begun, goOn] = [Promise.withResolvers<number>(), Promise.withResolvers<void>()];
  const putPieces = async (_key: string, pieces: AsyncIterable<Uint8Array>) => {
    for await (const piece of pieces) {
      begun.resolve(piece.length);
      await goOn.promise;
    }
  };
  Object.assign(blobs, { putPieces });
  const sending = request(`${url}/blobs/set1/roll1/1-0123456789abcdef.json.zst`, {
    method: "PUT",
    headers: { authorization: "Bearer node" },
  });
  const answer = once(sending, "response");
  let isSent = false;
  // More than the kernel keeps of what is not read.
  sending.end(Buffer.alloc(64 * 1024 * 1024), () => {
    isSent = true;
  });
  assert.ok((await begun.promise) <= 64 * 1024);
  await new Promise((resolve) => setTimeout(resolve, 200));
  assert.equal(isSent, false, "what is not kept yet is not read");
  goOn.resolve();
  const [{ statusCode }] = await answer;
  assert.equal(statusCode, 400, "they are not the bytes of that name");
});

test("an address that is none, one with a password, and a token that is not there are named before anything is sent", () => {
  const refused = (url: string, env: Record<string, string>) => {
    try {
      openBlobs(url, env);
    } catch (error) {
      return (error as Error).message;
    }
    return "taken";
  };
  assert.match(refused("http://", { ALIDADE_SERVICE_TOKEN: "x" }), /is no address of a service: give http\(s\):\/\/host:port/);
  const withPassword = refused("http://me:secret@host:1", { ALIDADE_SERVICE_TOKEN: "x" });
  assert.match(withPassword, /http:\/\/…@host:1 is no address/);
  assert.match(refused("https://host:8700", {}), /needs ALIDADE_SERVICE_TOKEN, which is not set: put a token with the role node into it/);
  assert.equal(refused("https://host:8700", { ALIDADE_SERVICE_TOKEN: "x" }), "taken");
});

/** Answers with these statuses, one a request. */
async function brokenService(answers: number[]) {
  const server = createServer((request, response) => {
    request.resume().on("end", () => response.writeHead(answers.shift() ?? 500).end("{}"));
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const close = (): void => {
    server.close();
    server.closeAllConnections();
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, answers, close };
}
