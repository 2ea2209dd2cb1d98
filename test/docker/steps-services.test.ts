/** Steps that are graded by the state of a service apart, which goes on from one step to the next. */
import assert from "node:assert/strict";
import { cp, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import type { RolloutRecord } from "../../base/schema/rollout.ts";
import { baseImage, ensureBaseImage } from "../../sandboxes/docker/images/made/base-image.ts";
import { ScriptedEngine } from "../fakes/engines/scripted-engine.ts";
import { scratchFolder } from "../fakes/machine/scratch-folder.ts";
import { cli, jsonOf } from "../fakes/processes/cli.ts";
import { chatHarness } from "../fakes/rollouts/small-task.ts";
import { need } from "../needs.ts";

const scratch = scratchFolder("steps-services");

/**
 * Closes tickets. The rows stay in the log beside the database, because its connection stays open. `starts` counts its
 * starts, and `ended` says that it was asked to end.
 */
const desk = `
import json, os, signal, sqlite3, sys, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
database = sqlite3.connect("/srv/data/desk.db", isolation_level=None, check_same_thread=False)
database.executescript("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; CREATE TABLE tickets (id INTEGER PRIMARY KEY, status TEXT); INSERT INTO tickets VALUES (1, 'open'), (2, 'open'), (3, 'open')")
open("/srv/data/starts", "a").write("x")
def end(*_): open("/srv/data/ended", "w").write("yes"); os._exit(0)
signal.signal(signal.SIGTERM, end)
lock = threading.Lock()
class Desk(BaseHTTPRequestHandler):
    def answer(self, value):
        body = json.dumps(value).encode()
        self.send_response(200); self.send_header("content-length", str(len(body))); self.end_headers(); self.wfile.write(body)
    def do_GET(self):
        with lock: self.answer(database.execute("SELECT status FROM tickets WHERE id = ?", (self.path[1:],)).fetchone())
    def do_POST(self):
        said = self.rfile.read(int(self.headers.get("content-length", 0)))
        if self.path == "/said": return self.answer(json.loads(said)["answers"])
        with lock: database.execute("UPDATE tickets SET status = 'closed' WHERE id = ?", (self.path[1:],))
        self.answer("closed")
    def log_message(self, *_): pass
server = ThreadingHTTPServer(("127.0.0.1", 8080), Desk)
open("/srv/data/up", "w")
server.serve_forever()`;

const close = (id: number) => `python3 -c "import urllib.request as r; print(r.urlopen('http://desk:8080/${id}', b'').read())"`;

const ofDesk = (check: object) => ({ service: "desk", ...check });
const rows = (...closed: number[]) =>
  ofDesk({
    file: "/srv/data/desk.db",
    query: "SELECT id FROM tickets WHERE status = 'closed' ORDER BY id",
    equals: closed.map((id) => [id]),
  });
const answers = (id: number) => ofDesk({ http: { port: 8080, get: `/${id}`, json: "/0" }, equals: "closed" });
const startedOnce = ofDesk({ file: "/srv/data/starts", equals: "x" });
const wasEnded = (exists: boolean) => ofDesk({ file: "/srv/data/ended", exists });
const saidAlone = (text: string) => ofDesk({ http: { port: 8080, post: "/said" }, equals: JSON.stringify([text]) });
const changed = { file: "/srv/data/desk.db", except: [{ table: "tickets", where: "id < 3", columns: ["status"] }] };

/** `ends`: the last step's grader has the service ended. */
const graders = (ends: boolean) => ({
  one: { kind: "state", checks: [rows(1), answers(1), startedOnce, wasEnded(false), ofDesk({ unchanged: changed })] },
  two: {
    kind: "composite",
    combine: "weighted",
    parts: [
      { name: "work", grader: { kind: "state", checks: [{ file: "two.txt", equals: "2\n" }] } },
      {
        name: "desk",
        grader: { kind: "state", checks: [rows(1, 2), answers(2), saidAlone("done with two"), startedOnce, wasEnded(ends)] },
      },
    ],
  },
});

async function taskFile(name: string, ends: boolean): Promise<string> {
  const place = join(scratch, name);
  await mkdir(join(place, "files"), { recursive: true });
  await cp(chatHarness, join(place, "files", "chat-harness.ts"));
  const service = {
    image: baseImage,
    network: "apart",
    expose: [8080],
    folders: ["/srv/data"],
    state: ["/srv/data"],
    command: ["python3", "-c", desk],
    healthcheck: { command: ["test", "-e", "/srv/data/up"], interval_seconds: 0.2, retries: 900 },
    ...{ memory_mb: 64, disk_mb: 32, pids: 32 },
  };
  const steps = Object.entries(graders(ends)).map(([step, grader]) => ({
    name: step,
    grader,
    grade_seconds: 60,
    min_reward: { reward: 1 },
  }));
  const task = {
    task_id: name,
    instruction: "Close tickets.",
    environment: { files: "files", services: { desk: service } },
    limits: { agent_seconds: 300, grade_seconds: 120, memory_mb: 256, disk_mb: 64 },
    steps: Object.keys(graders(ends)).map((step) => ({ name: step, instruction: `Do ${step}.`, agent_seconds: 120 })),
    grader: { kind: "steps", combine: "mean", steps },
  };
  await writeFile(join(place, "task.yaml"), JSON.stringify(task));
  return place;
}

/** `commands`: what the agent runs in a step before it says that it is done. */
async function played(name: string, commands: Record<string, string>, grading: "fresh" | "shared") {
  const task = await taskFile(name, grading === "fresh");
  await using engine = await ScriptedEngine.start(({ messages }) => {
    const [, step = ""] = /Do (\w+)\./.exec(JSON.stringify(messages)) ?? [];
    if (messages.some(({ role }) => role === "assistant")) return { text: `done with ${step}` };
    return { tool_calls: [{ name: "bash", arguments: JSON.stringify({ command: commands[step] ?? "true" }) }] };
  });
  const harness = { command: ["/opt/alidade/node/bin/node", "/work/chat-harness.ts", "{instruction}"] };
  const file = join(scratch, `${name}-run.yaml`);
  await writeFile(file, JSON.stringify({ engine: { url: engine.url }, harness, sandbox: "docker", samples: 1, tasks: [task] }));
  const result = await cli(["run", "-c", file, "-n", "1", "-o", join(scratch, "runs"), "--grading", grading, "--json"]);
  const { run, rollouts } = jsonOf<{ run: string; rollouts: RolloutRecord[] }>(result);
  return { record: rollouts[0] ?? assert.fail(result.stderr), folder: run };
}

const rewards = ({ verdict }: RolloutRecord) => [
  verdict?.reward,
  verdict?.components["step/one"]?.value,
  verdict?.components["step/two"]?.value,
];

// It goes on from step to step, so it is alive while the first step is graded.
const [one, two] = [`${close(1)}; sleep 600 >/dev/null 2>&1 & echo $! > pid`, `kill -0 $(cat pid) && ${close(2)} && echo 2 > two.txt`];

const plays: [string, Record<string, string>, (number | undefined)[]][] = [
  ["both tickets", { one, two }, [1, 1, 1]],
  ["a wrong ticket in the first step", { one: close(2), two }, [0, 0, undefined]],
  ["nothing in the second step", { one }, [0.5, 1, 0]],
  ["a wrong row beside the right one", { one: `${one}\n${close(3)}`, two }, [0, 0, undefined]],
  ["the second step's file without its ticket", { one, two: "echo 2 > two.txt" }, [0.75, 1, 0.5]],
];

test("each step is graded by what the service holds when it ends, and the service goes on to the next one", {
  timeout: 900_000,
}, async (t) => {
  if (!(await need(t, "docker"))) return;
  await ensureBaseImage({ signal: t.signal });
  for (const [index, [title, commands, expected]] of plays.entries())
    await t.test(`${title}: ${expected[0]}`, async () => {
      const { record, folder } = await played(`play-${index}`, commands, "fresh");
      assert.deepEqual(rewards(record), expected, JSON.stringify(record.verdict));
      assert.deepEqual([record.error, record.verdict?.tier], [null, "T3"]);
      const kept = record.steps.map(({ services }) => services?.sha256);
      assert.ok(kept.every((sha256) => sha256 !== undefined));
      assert.deepEqual([kept.at(-1), new Set(kept).size], [record.services?.after.sha256, kept.length]);
      const again = jsonOf<{ regraded: { after: number | null }[] }>(await cli(["regrade", folder, "--json"]));
      assert.deepEqual(
        again.regraded.map(({ after }) => after),
        expected.slice(0, 1),
        "graded again without the desk",
      );
    });
});

test("with grading in the agent's own sandbox a service is read between steps too, and is not ended", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "docker"))) return;
  await ensureBaseImage({ signal: t.signal });
  const { record } = await played("shared", { one: close(1), two: `${close(2)} && echo 2 > two.txt` }, "shared");
  assert.deepEqual(rewards(record), [1, 1, 1], JSON.stringify(record.verdict));
});
