/** A run that is killed while a service works on a call of a tool, and is resumed. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cp, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import type { RolloutRecord } from "../../base/schema/rollout.ts";
import { DiskStore } from "../../proxy/store/index.ts";
import { reconstruct } from "../../reconstruct/index.ts";
import { ScriptedEngine } from "../fakes/engines/scripted-engine.ts";
import { scratchFolder } from "../fakes/machine/scratch-folder.ts";
import { jsonOf, startCli } from "../fakes/processes/cli.ts";
import { chatHarness } from "../fakes/rollouts/small-task.ts";
import { need } from "../needs.ts";

const scratch = scratchFolder("killed-in-call");

/** Its one tool writes a line to its state, and answers when a file `go` lies beside it. */
const server = `
import json, os, sys, time
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m: continue
    args = (m.get("params") or {}).get("arguments") or {}
    if m["method"] == "tools/call":
        with open("/srv/data/calls", "a") as calls: calls.write(args["word"] + "\\n")
        while not os.path.exists("/srv/data/go"): time.sleep(0.2)
    r = {"initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}},
         "tools/list": {"tools": [{"name": "write"}]}, "tools/call": {"content": []}}.get(m["method"], {})
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)`;

const task = {
  task_id: "one-call",
  instruction: "Write once.",
  environment: {
    files: "files",
    services: {
      desk: {
        network: "apart",
        expose: [8080],
        user: "7:7",
        command: ["sleep", "600"],
        folders: ["/srv/data"],
        state: ["/srv/data"],
        memory_mb: 64,
        disk_mb: 16,
      },
    },
    tools: [{ name: "desk", service: "desk", command: ["python3", "-c", server] }],
  },
  limits: { memory_mb: 256, disk_mb: 64 },
  grader: { kind: "state", checks: [{ service: "desk", file: "/srv/data/calls", equals: "now\n" }] },
};

const call = (args: object) => `python3 -c "
import json, urllib.request as r
body = {'jsonrpc': '2.0', 'id': 1, 'method': 'tools/call', 'params': {'name': 'write', 'arguments': json.loads('''${JSON.stringify(args).replaceAll('"', '\\"')}''')}}
print(r.urlopen(r.Request('http://127.0.0.1:4000/mcp/desk', json.dumps(body).encode(), {'content-type': 'application/json'})).read())"`;

test("a run that was killed in a call of a tool leaves nothing, makes no call twice, and says that the call's end is unknown", {
  timeout: 300_000,
}, async (t) => {
  if (!(await need(t, "docker"))) return;
  const place = join(scratch, "task");
  await mkdir(join(place, "files"), { recursive: true });
  await cp(chatHarness, join(place, "files", "chat-harness.ts"));
  await writeFile(join(place, "task.yaml"), JSON.stringify(task));
  await using engine = await ScriptedEngine.start(({ messages }) => {
    if (!JSON.stringify(messages).includes("Write once")) return { text: "yes" };
    if (messages.some(({ role }) => role === "assistant")) return { text: "done" };
    return { tool_calls: [{ name: "bash", arguments: JSON.stringify({ command: call({ word: "now" }) }) }] };
  });
  const harness = { command: ["/opt/alidade/node/bin/node", "/work/chat-harness.ts", "{instruction}"] };
  const file = join(scratch, "run.yaml");
  await writeFile(file, JSON.stringify({ engine: { url: engine.url }, harness, sandbox: "docker", samples: 1, tasks: [place] }));
  const runs = join(scratch, "runs");
  const run = async () => (await readdir(runs).catch(() => []))[0] ?? "none";
  const containers = async () => idsOf(await run());

  await using running = startCli(["run", "-c", file, "-n", "1", "-o", runs]);
  const left = new Set<string>();
  const findHolding = async () => (await containers()).find((id) => !left.has(id) && callsIn(id) === "now\n");
  await running.until(async () => (await findHolding()) !== undefined);
  const doors = await childrenOf(running.child.pid ?? 0);
  assert.notEqual(doors.length, 0);
  await running.kill("SIGKILL");
  const path = join(runs, await run());
  const [killed] = await sessionsOf(path);
  assert.ok(killed);
  for (const id of await containers()) left.add(id);
  // If this machine cannot enter the service's namespace, a third container holds it.
  assert.ok(left.size === 2 || left.size === 3, `${left.size} containers: the sandbox and the service`);

  // The new attempt is given the answer that the killed one had: it makes the same call, in services of its own.
  await using resuming = startCli(["run", "--resume", path, "--json"]);
  let held: string | undefined;
  await resuming.until(async () => {
    held = await findHolding();
    return held !== undefined;
  });
  execFileSync("docker", ["exec", held ?? assert.fail(), "touch", "/srv/data/go"]);
  const resumed = await resuming.ended;
  const [record] = jsonOf<{ rollouts: RolloutRecord[] }>(resumed).rollouts;
  assert.equal(record?.verdict?.reward, 1, `the new services have the new attempt's one call alone: ${resumed.stderr}`);
  assert.deepEqual(await containers(), []);
  const alive = await Promise.all(doors.map(isAlive));
  assert.ok(!alive.includes(true), "no process holds a door any more");

  assert.deepEqual(await sessionsOf(path), [killed], "the new attempt goes on in the session");
  const { tool_runs: made } = reconstruct(await new DiskStore(join(path, "sessions")).read(killed));
  assert.deepEqual(
    made?.map(({ outcome, arguments: args }) => [outcome, JSON.parse(args)]),
    [
      ["unknown", { word: "now" }],
      ["ok", { word: "now" }],
    ],
  );
});

async function sessionsOf(path: string): Promise<string[]> {
  const files = await readdir(join(path, "sessions"));
  return files.filter((name) => name.endsWith(".jsonl")).map((name) => name.replace(/\.jsonl$/, ""));
}

function idsOf(run: string): string[] {
  const ids = execFileSync("docker", ["ps", "-aq", "--filter", `label=alidade.run=${run}`], { encoding: "utf8" });
  return ids.split("\n").filter((id) => id !== "");
}

/** What the tool has written in a container; null where it is not there. */
function callsIn(id: string): string | null {
  try {
    return execFileSync("docker", ["exec", id, "cat", "/srv/data/calls"], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  } catch {
    return null;
  }
}

/** The processes that a process has started: of a run, those that hold its doors. */
async function childrenOf(pid: number): Promise<string[]> {
  const text = await readFile(`/proc/${pid}/task/${pid}/children`, "utf8");
  return text.split(" ").filter((one) => one !== "");
}

/** A zombie has ended. */
async function isAlive(pid: string): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => null);
  return stat !== null && !/\) Z /.test(stat);
}
