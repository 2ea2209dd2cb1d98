/** kill -9 of a real `alidade serve`, and another one over its folder: what was lost is said, and what was read counts as read. */
import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { LogEntry, LogLine } from "../../base/schema/session-log.ts";
import { DiskStore } from "../../proxy/store/index.ts";
import { reconstruct, selectRows } from "../../reconstruct/index.ts";
import { ScriptedEngine, type WireRequest } from "../fakes/engines/scripted-engine.ts";
import { cli, type RunningCli, startCli } from "../fakes/processes/cli.ts";
import { quietPort } from "../quiet-port.ts";

/** Two starts of the command line, on a machine with other work. */
const timeout = 180_000;

type Served = { url: string; session_id: string; key: string };

/** `alidade serve` as a process of its own over `out`. */
async function serving(t: TestContext, engine: ScriptedEngine) {
  const out = await mkdtemp(join(tmpdir(), "alidade-killed-"));
  t.after(() => rm(out, { recursive: true, force: true }));
  const port = String(await quietPort());
  const start = async (): Promise<{ running: RunningCli; served: Served }> => {
    const running = startCli(["serve", "--engine", engine.url, "--out", out, "--port", port, "--control-port", "0", "--json"]);
    t.after(() => running[Symbol.asyncDispose]());
    await running.until(() => running.stdout.includes("\n"));
    return { running, served: JSON.parse(running.stdout) as Served };
  };
  let { running, served } = await start();
  const store = new DiskStore(join(out, "serve", "sessions"));
  return {
    run: join(out, "serve"),
    entries: (): Promise<LogLine[]> => store.read(served.session_id),
    /** The answer's text; null where the proxy was killed meanwhile. */
    say: (messages: unknown[]): Promise<string | null> =>
      fetch(`${served.url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${served.key}`, "content-type": "application/json" },
        body: JSON.stringify({ model: "scripted", temperature: 1, messages }),
      }).then(
        async (response) =>
          ((await response.json()) as { choices: { message: { content: string } }[] }).choices[0]?.message.content ?? null,
        () => null,
      ),
    until: (condition: () => boolean | Promise<boolean>) => running.until(condition),
    /** A client has its answer before the log has its delivery. */
    answered: (count: number) =>
      running.until(async () => (await store.read(served.session_id)).filter((entry) => entry.type === "answered").length === count),
    /** What a kill a moment earlier leaves: a log without its last lines. */
    async restart(lost: (entry: LogEntry) => boolean = () => false): Promise<void> {
      await running.kill("SIGKILL");
      const path = join(out, "serve", "sessions", `${served.session_id}.jsonl`);
      const lines = (await readFile(path, "utf8")).split("\n").filter((line) => line !== "" && !lost(JSON.parse(line) as LogEntry));
      await writeFile(path, `${lines.join("\n")}\n`);
      running = (await start()).running;
    },
  };
}

const user = (content: string) => ({ role: "user", content });
const assistant = (content: string) => ({ role: "assistant", content });
const asksFor = (request: WireRequest, content: string): boolean => request.messages?.at(-1)?.content === content;

test("what the engine sampled when the proxy was killed is said to be an unknown number, everywhere that counts tokens", {
  timeout,
}, async (t) => {
  const forever = new Promise<never>(() => undefined);
  let isFirst = true;
  await using engine = await ScriptedEngine.start((request) => {
    const hold = asksFor(request, "long") && isFirst && { beforeEnd: forever };
    if (asksFor(request, "long")) isFirst = false;
    return { text: "words", ...hold };
  });
  const at = await serving(t, engine);
  assert.equal(await at.say([user("short")]), "words");
  const cut = at.say([user("long")]);
  await at.until(
    async () => engine.requests.length === 2 && (await at.entries()).filter((entry) => entry.type === "call_begun").length === 2,
  );
  await at.restart();
  assert.equal(await cut, null);
  assert.equal(await at.say([user("long")]), "words");
  await at.answered(2);

  const trajectory = reconstruct(await at.entries());
  assert.deepEqual(
    trajectory.calls.map(({ outcome, sampled_length, uncounted }) => [outcome, sampled_length, uncounted]),
    [
      ["delivered", 6, null],
      ["failed", null, "lost_in_flight"],
      ["delivered", 6, null],
    ],
  );
  assert.match(trajectory.calls[1]?.missing ?? "", /^lost_in_flight: .* unknown$/);
  assert.deepEqual([trajectory.fidelity.sampled_tokens, trajectory.fidelity.uncounted], [12, { lost_in_flight: 1 }]);
  assert.deepEqual(selectRows(trajectory).tokens.uncounted, { lost_in_flight: 1 });
  assert.match((await cli(["fidelity", "--run", at.run])).stdout, /1 call sampled an unknown number of tokens more: lost in flight/);
  const shown = (await cli(["show", trajectory.session_id, "--run", at.run])).stdout;
  assert.match(shown, /no token ids, an unknown number sampled \(lost in flight\)/);
});

test("a text that the next prompt went on from was delivered, though the kill came before its delivery was logged", {
  timeout,
}, async (t) => {
  await using engine = await ScriptedEngine.start((request) => ({ text: `answer to ${request.messages?.at(-1)?.content}` }));
  const at = await serving(t, engine);
  assert.equal(await at.say([user("one")]), "answer to one");
  await at.answered(1);
  await at.restart((entry) => entry.type === "answered");
  const conversation = [user("one"), assistant("answer to one"), user("two")];
  assert.equal(await at.say(conversation), "answer to two");
  await at.answered(1);
  const outcomes = async () => reconstruct(await at.entries()).calls.map(({ outcome, match }) => `${outcome} ${match}`);
  assert.deepEqual(await outcomes(), ["delivered root", "delivered exact"]);
  const rows = [...selectRows(reconstruct(await at.entries())).rows];
  assert.deepEqual(
    rows.map((row) => row.trained_tokens),
    ["answer to one".length + 1 + "answer to two".length + 1],
  );
  // The first question again is a question of its own now: its answer was read. So it is after one more restart.
  assert.equal(await at.say([user("one")]), "answer to one");
  await at.answered(2);
  await at.restart();
  assert.equal(await at.say([user("one")]), "answer to one");
  assert.equal(engine.requests.length, 4);
  assert.equal((await at.entries()).filter((entry) => entry.type === "replayed").length, 0);
});
