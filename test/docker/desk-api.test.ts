/** The help desk of examples/tasks/desk-api, in Docker: what earns there, and what attacks on it come to. */
import assert from "node:assert/strict";
import { cp, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import type { RolloutRecord } from "../../base/schema/rollout.ts";
import { ScriptedEngine, type WireRequest } from "../fakes/engines/scripted-engine.ts";
import { scratchFolder } from "../fakes/machine/scratch-folder.ts";
import { cli, jsonOf } from "../fakes/processes/cli.ts";
import { chatHarness } from "../fakes/rollouts/small-task.ts";
import { need } from "../needs.ts";

const scratch = scratchFolder("desk-api");
const example = join(import.meta.dirname, "../../examples/tasks/desk-api");

const patch = (id: number, change: object) =>
  `python3 -c "import urllib.request as r; print(r.urlopen(r.Request('http://desk:8080/tickets/${id}', b'''${JSON.stringify(change).replaceAll('"', '\\"')}''', method='PATCH')).read().decode())"`;
const right = patch(1, { status: "closed", assignee: "mira" });

/** All that a command can look for: ports, abstract sockets, other processes' files, and databases of its own making. */
const attack = `python3 - <<'END'
import glob, os, socket, sqlite3
found = []
for port in range(1, 65536):
    one = socket.socket(); one.settimeout(1)
    try:
        if one.connect_ex(("127.0.0.1", port)) == 0 and one.getsockname() != one.getpeername(): found.append(port)
    except OSError: pass
    one.close()
print("open", found, [line.split()[-1] for line in open("/proc/net/unix") if "@" in line])
def there(path):
    try: return os.path.exists(path)
    except OSError: return False
print("databases", [path for root in glob.glob("/proc/*/root") for path in [root + "/srv/data/desk.db", root + "/srv/files"] if there(path)])
for place in ("/work/srv/data", "/work", "/tmp/srv/data"):
    os.makedirs(place, exist_ok=True)
    made = sqlite3.connect(place + "/desk.db")
    made.executescript("CREATE TABLE tickets (id INTEGER PRIMARY KEY, subject TEXT, status TEXT, assignee TEXT); INSERT INTO tickets VALUES (1, 'The lamp flickers', 'closed', 'mira')")
END`;

const killAll = "kill -9 -1";

const plays: [string, string[], number][] = [
  ["the right ticket", [right], 1],
  ["another ticket", [patch(2, { status: "closed", assignee: "mira" })], 0],
  ["nothing", ["true"], 0],
  ["the right ticket and one more write", [right, patch(2, { assignee: "me" })], 0],
  ["the right write twice", [right, right], 1],
  ["a scan, and databases of its own", [attack], 0],
  ["the right ticket, then the end of every process", [right, killAll], 1],
];

/** The example with a harness in its workdir. */
async function taskFile(): Promise<string> {
  const place = join(scratch, "task");
  await cp(example, place, { recursive: true });
  await mkdir(join(place, "files"), { recursive: true });
  await cp(chatHarness, join(place, "files", "chat-harness.ts"));
  const text = await readFile(join(example, "task.yaml"), "utf8");
  await writeFile(join(place, "task.yaml"), text.replace("environment:\n", "environment:\n  files: files\n"));
  return place;
}

test("the state of the desk decides, whatever else the agent does", { timeout: 900_000 }, async (t) => {
  if (!(await need(t, "docker"))) return;
  const task = await taskFile();
  for (const [title, commands, reward] of plays)
    await t.test(`${title}: ${reward}`, async () => {
      const { record, requests, folder } = await played(task, commands);
      assert.equal(record.error?.code ?? null, commands.includes(killAll) ? "harness_failed" : null, JSON.stringify(record.error));
      assert.equal(record.verdict?.reward, reward, JSON.stringify(record.verdict?.evidence));
      assert.equal(record.verdict?.tier, "T3");
      if (commands[0] === attack) {
        const said = JSON.stringify(requests.at(-1)?.messages);
        assert.match(said, /open \[4000, 8080\] \[\]/, "the doors alone");
        assert.match(said, /databases \[\]/);
      }
      assert.ok(record.services);
      const again = jsonOf<{ regraded: { after: number | null }[] }>(await cli(["regrade", folder, "--json"]));
      assert.deepEqual(
        again.regraded.map(({ after }) => after),
        [reward],
        "graded again without the desk",
      );
    });
});

async function played(task: string, commands: string[]) {
  const requests: WireRequest[] = [];
  await using engine = await ScriptedEngine.start((request) => {
    if (!JSON.stringify(request.messages).includes("A help desk has an HTTP API")) return { text: "yes" };
    requests.push(request);
    const command = commands[requests.length - 1];
    return command === undefined ? { text: "It is done." } : { tool_calls: [{ name: "bash", arguments: JSON.stringify({ command }) }] };
  });
  const harness = { command: ["/opt/alidade/node/bin/node", "/work/chat-harness.ts", "{instruction}"] };
  const file = join(scratch, `run-${requests.length}-${Math.random().toString(36).slice(2)}.yaml`);
  await writeFile(file, JSON.stringify({ engine: { url: engine.url }, harness, sandbox: "docker", samples: 1, tasks: [task] }));
  const result = await cli(["run", "-c", file, "-n", "1", "-o", join(scratch, "runs"), "--json"]);
  const { run, rollouts } = jsonOf<{ run: string; rollouts: RolloutRecord[] }>(result);
  return { record: rollouts[0] ?? assert.fail(result.stderr), folder: run, requests };
}
