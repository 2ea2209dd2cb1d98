import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { cliProcess } from "../../fakes/processes/cli.ts";

const labels = { "alidade.run": "r1", "alidade.owner": "1:1", "alidade.host": "elsewhere", "alidade.lease": "0" };

/** A Docker engine with containers and volumes past their lease; it fails to remove those that are named `stuck-…`. */
async function halfStuckEngine(t: TestContext): Promise<{ host: string; removed: string[] }> {
  const removed: string[] = [];
  const named = ["stuck-1", "free-1", "stuck-2", "free-2"];
  const server: Server = createServer((request, response) => {
    const [, name = ""] = /\/(?:containers|volumes)\/([\w-]+)\?/.exec(`${request.url}?`) ?? [];
    const answer = (status: number, body: unknown) =>
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    if (request.method === "DELETE") {
      if (name.startsWith("stuck")) return answer(500, { message: "device or resource busy" });
      removed.push(name);
      return response.writeHead(204).end();
    }
    if (/\/containers\/json/.test(request.url ?? ""))
      return answer(
        200,
        named.map((each) => ({ Id: each, Names: [`/${each}`], Labels: labels })),
      );
    if (/\/volumes/.test(request.url ?? ""))
      return answer(200, { Volumes: named.map((each) => ({ Name: `${each}-volume`, Labels: labels })) });
    return response.end("OK");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.close());
  return { host: `tcp://127.0.0.1:${(server.address() as AddressInfo).port}`, removed };
}

test("reap goes on where something cannot be removed, says what, and ends with 1", { timeout: 300_000 }, async (t) => {
  const { host, removed } = await halfStuckEngine(t);
  const folder = await mkdtemp(join(tmpdir(), "alidade-reap-"));
  t.after(() => rm(folder, { recursive: true }));
  const env = { DOCKER_HOST: host, TMPDIR: folder, ALIDADE_CACHE: folder };

  const { code, stdout } = await cliProcess(["reap", "--json"], { env });
  assert.equal(code, 1);
  assert.deepEqual(removed, ["free-1", "free-2", "free-1-volume", "free-2-volume"]);
  const told = JSON.parse(stdout);
  assert.equal(told.removed.length, 3); // both volumes are of one run
  assert.deepEqual(
    told.failed.map((each: string) => /^(container|volume) (stuck-\S+).* of run r1.*busy/.exec(each)?.[2]),
    ["stuck-1", "stuck-2", "stuck-1-volume", "stuck-2-volume"],
  );
  assert.match((await cliProcess(["reap"], { env })).stderr, /removed container free-1 .*could not remove container stuck-1 .*busy/s);
});
