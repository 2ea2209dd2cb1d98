/** Servers of tools in real services: a command's streams, the agent's own sandbox, and a service that dies in a call. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { currentOwner } from "../../base/host/owner.ts";
import { ToolServer } from "../../base/schema/environment/tool-servers.ts";
import { Environment, Limits } from "../../base/schema/task.ts";
import { openTools } from "../../proxy/index.ts";
import { ensureBaseImage } from "../../sandboxes/docker/images/made/base-image.ts";
import { docker } from "../../sandboxes/docker.ts";
import { specOf } from "../../sandboxes/task-spec.ts";
import { proxyAt } from "../fakes/proxies/proxy-at.ts";
import { callText } from "../fakes/tools/tools-at.ts";
import { need } from "../needs.ts";

/** Answers a message a line; `die` ends it. */
const speaker = `
import json, os, sys
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m: continue
    name = (m.get("params") or {}).get("name")
    if name == "die": os._exit(1)
    r = {"initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}},
         "tools/list": {"tools": [{"name": "who"}, {"name": "die"}]}, "ping": {},
         "tools/call": {"content": [{"type": "text", "text": "%d in %s" % (os.getuid(), os.getcwd())}]}}[m["method"]]
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)`;
const command = ["python3", "-c", speaker];

test("a command speaks in its service or in the agent's sandbox; a service that dies is down, and what the agent can end is not asked", {
  timeout: 300_000,
}, async (t) => {
  if (!(await need(t, "docker"))) return;
  await ensureBaseImage({ signal: t.signal });
  const environment = Environment.parse({
    services: { desk: { network: "apart", command: ["sleep", "600"], user: "7:7", memory_mb: 64, disk_mb: 16 } },
  });
  const limits = Limits.parse({ memory_mb: 128, disk_mb: 32 });
  await using sandbox = await docker.create(specOf({ environment, limits }, { run_id: "tools", owner: await currentOwner() }), t.signal);
  await using at = await proxyAt(() => ({ text: "yes" }));
  const { session } = await at.proxy.openSession({ sandboxed: true });
  const servers = [
    ToolServer.parse({ name: "desk", service: "desk", command }),
    ToolServer.parse({ name: "own", service: "main", command }),
  ];
  await using relay = await openTools(session, servers, sandbox, t.signal);
  assert.match((await relay.answer("desk", callText("who", "{}"))) ?? "", /7 in \//);
  assert.match((await relay.answer("own", callText("who", "{}"))) ?? "", /1000 in \/work/);
  assert.match((await relay.answer("own", callText("die", "{}"))) ?? "", /The tool die failed: its command ended/);
  assert.equal(relay.failed.aborted, false);
  assert.match((await relay.answer("desk", callText("die", "{}"))) ?? "", /The tool die failed: its command ended/);
  assert.match(relay.failure?.message ?? "", /^the service desk of the tool server desk is down/);
});
