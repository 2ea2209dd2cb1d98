/**
 * A task of Harbor's with servers of tools and skills, run whole by real programs. The model loads a skill, calls a tool of a
 * service and one of a command in the agent's container, and writes what they answered. The task's own tests grade it.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import type { RolloutRecord } from "../../base/schema/rollout.ts";
import { readTrajectories } from "../../rollouts/index.ts";
import { baseImage, ensureBaseImage } from "../../sandboxes/docker/images/made/base-image.ts";
import { ScriptedEngine, type ScriptedReply, type WireRequest } from "../fakes/engines/scripted-engine.ts";
import { type HarborFiles, harborFolder } from "../fakes/harbor-tasks.ts";
import { scratchFolder } from "../fakes/machine/scratch-folder.ts";
import { cli, jsonOf } from "../fakes/processes/cli.ts";
import { shellCall } from "../fakes/tools/shell-call.ts";
import { toolNameIn } from "../fakes/tools/tool-name.ts";
import { need } from "../needs.ts";

const scratch = scratchFolder("harbor-tools");
const secret = "crane-4711";

const answers = (result: string) => `
def answer(m):
    return {"initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}, "ping": {},
            "tools/list": {"tools": [{"name": "look_up", "description": "Looks it up.", "inputSchema": {"type": "object"}}]},
            "tools/call": {"content": [{"type": "text", "text": ${result}}]}}[m["method"]]`;

/** Streamable HTTP without a stream: one answer a request. */
const overHttp = `import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
${answers(JSON.stringify(`The word is ${secret}.`))}
class Mcp(BaseHTTPRequestHandler):
    def do_POST(self):
        m = json.loads(self.rfile.read(int(self.headers["content-length"])))
        body = json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": answer(m)}).encode() if "id" in m else b""
        self.send_response(200 if body else 202)
        self.send_header("content-type", "application/json"); self.send_header("content-length", str(len(body)))
        self.end_headers(); self.wfile.write(body)
    def do_GET(self): self.send_error(405)
    do_DELETE = do_GET
    def log_message(self, *_): pass
ThreadingHTTPServer(("0.0.0.0", 8123), Mcp).serve_forever()
`;

const overStdio = `import json, os, sys
${answers(`"It folds in " + os.getcwd()`)}
for line in sys.stdin:
    m = json.loads(line)
    if "id" in m: print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": answer(m)}), flush=True)
`;

const files: HarborFiles = {
  "task.toml": `schema_version = "1.4"
[task]
name = "alidade/fold-by-tools"
[agent]
timeout_sec = 200.0
[verifier]
timeout_sec = 60.0
[environment]
memory_mb = 1024
storage_mb = 512
skills_dir = "/opt/skills"

[[environment.mcp_servers]]
name = "words"
transport = "streamable-http"
url = "http://dictionary:8123/mcp"

[[environment.mcp_servers]]
name = "folding"
transport = "stdio"
command = "python3"
args = ["/opt/folding.py"]
`,
  "instruction.md": "Ask your tools for the word and the folder, and write both into `/app/answer.txt`, as the skill says.\n",
  "environment/Dockerfile": `FROM ${baseImage}\nWORKDIR /app\nCOPY skills /opt/skills\nCOPY folding.py /opt/folding.py\nRUN rm -f "$(command -v rg)"\n`,
  "environment/folding.py": overStdio,
  "environment/skills/fold-paper/SKILL.md":
    "---\nname: fold-paper\ndescription: How to write down what was folded.\n---\n\nOne line each.\n",
  "environment/docker-compose.yaml": `services:
  main: { depends_on: { dictionary: { condition: service_healthy } } }
  dictionary:
    build: ./dictionary
    mem_limit: 64m
    healthcheck: { test: [CMD, python3, -c, "import socket; socket.create_connection(('127.0.0.1', 8123))"], interval: 1s, retries: 60 }
`,
  "environment/dictionary/Dockerfile": `FROM ${baseImage}\nCOPY server.py /srv/server.py\nCMD ["python3", "/srv/server.py"]\n`,
  "environment/dictionary/server.py": overHttp,
  "tests/test.sh": `#!/bin/sh
if grep -q 'The word is ${secret}' /app/answer.txt && grep -q 'It folds in /app' /app/answer.txt; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
`,
};

/** How the model loads the skill. */
const loads: Record<string, [tool: string, args: object]> = {
  "claude-code": ["Skill", { skill: "fold-paper" }],
  opencode: ["skill", { name: "fold-paper" }],
};

/** What tools said, taken out of the conversation as a model does. */
function saidIn({ messages }: WireRequest): string {
  const text = JSON.stringify(messages.filter(({ role }) => role === "tool"));
  return [/The word is [\w-]+/, /It folds in [\w/]+/].map((pattern) => pattern.exec(text)?.[0] ?? "?").join("; ");
}

function replyTo(harness: string, request: WireRequest, turn: number): ScriptedReply {
  const asked = (server: string) => ({ name: toolNameIn(request, server, "look_up") ?? `no tool of ${server}`, arguments: "{}" });
  const [tool = "", args = {}] = loads[harness] ?? [];
  const calls = [
    { name: tool, arguments: JSON.stringify(args) },
    asked("words"),
    asked("folding"),
    shellCall(request, `echo '${saidIn(request)}' > /app/answer.txt`),
  ];
  const call = calls[turn];
  return call === undefined ? { text: "It is written." } : { tool_calls: [call] };
}

for (const harness of Object.keys(loads) as ("claude-code" | "opencode")[])
  test(`${harness} loads a skill and calls the tools of a service and of a command in a task of Harbor's, whose tests grade it`, {
    timeout: 600_000,
  }, async (t) => {
    if (!(await need(t, "docker")) || !(await need(t, `harness:${harness}`))) return;
    await ensureBaseImage({ signal: t.signal });
    const requests: WireRequest[] = [];
    await using engine = await ScriptedEngine.start((request) => {
      // The proxy's own questions to the engine have no instruction of the task's.
      if (!JSON.stringify(request.messages).includes("Ask your tools for the word")) return { text: "yes" };
      requests.push(request);
      return replyTo(harness, request, requests.length - 1);
    });
    const task = await harborFolder({ one: files });
    const flags = ["--engine", engine.url, "--harness", harness, "--sandbox", "docker", "-n", "1", "-o", join(scratch, harness), "--json"];
    const result = await cli(["run", task, ...flags]);
    const { run, rollouts } = jsonOf<{ run: string; rollouts: RolloutRecord[] }>(result);
    const [record] = rollouts;
    assert.deepEqual([record?.error, record?.verdict?.reward], [null, 1], JSON.stringify(record?.verdict) + result.stderr);
    const [first = "", second = ""] = requests.map((request) => JSON.stringify(request));
    assert.match(first, /fold-paper.*How to write down what was folded/);
    assert.ok(!first.includes("One line each."), "a skill is loaded when it is asked for");
    assert.match(second, /One line each\./);
    const [trajectory] = await readTrajectories(run);
    assert.deepEqual(
      trajectory?.tool_runs?.map(({ server, tool, outcome, unasked }) => [server, tool, outcome, unasked ?? false]),
      [
        ["words", "look_up", "ok", false],
        ["folding", "look_up", "ok", false],
      ],
    );
  });
