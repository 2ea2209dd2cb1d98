/** Services that do not answer any more when the agent has ended: by its doing a check does not hold, by the machine's there is no reward. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cp, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import type { RolloutRecord } from "../../base/schema/rollout.ts";
import { ScriptedEngine } from "../fakes/engines/scripted-engine.ts";
import { scratchFolder } from "../fakes/machine/scratch-folder.ts";
import { cli, jsonOf } from "../fakes/processes/cli.ts";
import { chatHarness } from "../fakes/rollouts/small-task.ts";
import { need } from "../needs.ts";

const scratch = scratchFolder("killed-services");
/** No other container has this name. */
const desk = `desk-${process.pid}`;

/** Serves one request at a time, and has a server of tools too. What is asked of it can end it or hang it. */
const server = `
import json, os, time
from http.server import BaseHTTPRequestHandler, HTTPServer
def do(word):
    if word == "die": os._exit(3)
    while word == "hang": time.sleep(60)
class Desk(BaseHTTPRequestHandler):
    def send(self, body):
        said = json.dumps(body).encode()
        self.send_response(200); self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(said))); self.end_headers(); self.wfile.write(said)
    def do_GET(self):
        do(self.path[1:]); self.send({"ok": True})
    def do_POST(self):
        m = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if m["method"] == "tools/call": do(m["params"]["name"])
        results = {"initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}},
                   "tools/list": {"tools": [{"name": "die"}, {"name": "look"}]}, "tools/call": {"content": []}}
        self.send({"jsonrpc": "2.0", "id": m.get("id"), "result": results.get(m["method"], {})})
    def log_message(self, *words): pass
desk = HTTPServer(("127.0.0.1", 8080), Desk)
open("/tmp/up", "w")
desk.serve_forever()`;

const task = (file: string) => ({
  task_id: "fragile",
  instruction: "Work at the desk.",
  environment: {
    files: file,
    services: {
      [desk]: {
        aliases: ["desk"],
        network: "apart",
        expose: [8080],
        command: ["python3", "-c", server],
        healthcheck: { command: ["test", "-e", "/tmp/up"], interval_seconds: 0.2, retries: 900 },
        memory_mb: 64,
        disk_mb: 16,
      },
    },
    tools: [{ name: "desk", service: desk, port: 8080 }],
  },
  limits: { memory_mb: 256, disk_mb: 64 },
  grader: { kind: "state", checks: [{ service: desk, http: { port: 8080, get: "/ok", json: "/ok" }, equals: true }] },
});

const get = (path: string) =>
  `timeout 2 python3 -c "import urllib.request as r; print(r.urlopen('http://desk:8080/${path}').read())"; true`;
const call = (name: string) => `timeout 30 python3 -c "
import json, urllib.request as r
body = {'jsonrpc': '2.0', 'id': 1, 'method': 'tools/call', 'params': {'name': '${name}'}}
print(r.urlopen(r.Request('http://127.0.0.1:4000/mcp/desk', json.dumps(body).encode(), {'content-type': 'application/json'})).read())"; true`;

/** As a machine that is out of memory does. */
function killDesk(): void {
  const [id] = execFileSync("docker", ["ps", "-q", "--filter", `name=-${desk}$`], { encoding: "utf8" }).split("\n");
  execFileSync("docker", ["kill", id ?? ""]);
}

type Play = { says: string; command: string; after?: () => void; code: string | null; reward: number | null };

const plays: Play[] = [
  { says: "uses it", command: `${get("ok")}; ${call("look")}`, code: null, reward: 1 },
  { says: "ends it over its exposed port", command: get("die"), code: null, reward: 0 },
  { says: "hangs it over its exposed port", command: get("hang"), code: null, reward: 0 },
  { says: "ends it by a call of a tool", command: call("die"), code: "tool_service_killed", reward: 0 },
  { says: "uses it, and the machine kills it", command: `${get("ok")}; ${call("look")}`, after: killDesk, code: null, reward: null },
];

test("a service that the agent ends is a check that does not hold, and one that the machine ends no reward", {
  timeout: 600_000,
}, async (t) => {
  if (!(await need(t, "docker"))) return;
  const place = join(scratch, "task");
  await mkdir(join(place, "files"), { recursive: true });
  await cp(chatHarness, join(place, "files", "chat-harness.ts"));
  await writeFile(join(place, "task.yaml"), JSON.stringify(task("files")));
  for (const [index, play] of plays.entries())
    await t.test(`an agent ${play.says}`, async () => {
      const record = await played(place, index, play);
      assert.deepEqual([record.error?.code ?? null, record.verdict?.reward], [play.code, play.reward], JSON.stringify(record));
    });
});

async function played(place: string, index: number, { command, after }: Play): Promise<RolloutRecord> {
  let turns = 0;
  await using engine = await ScriptedEngine.start(({ messages }) => {
    if (!JSON.stringify(messages).includes("Work at the desk")) return { text: "yes" };
    turns++;
    if (turns === 1) return { tool_calls: [{ name: "bash", arguments: JSON.stringify({ command }) }] };
    after?.();
    return { text: "done" };
  });
  const harness = { command: ["/opt/alidade/node/bin/node", "/work/chat-harness.ts", "{instruction}"] };
  const file = join(scratch, `${index}.yaml`);
  const run = { engine: { url: engine.url }, harness, sandbox: "docker", samples: 1, tasks: [place], retries: 0 };
  await writeFile(file, JSON.stringify(run));
  const result = await cli(["run", "-c", file, "-n", "1", "-o", join(scratch, "runs"), "--json"]);
  const { rollouts } = jsonOf<{ rollouts: RolloutRecord[] }>(result);
  return rollouts[0] ?? assert.fail(result.stderr);
}
