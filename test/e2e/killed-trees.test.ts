/** Kills a service and its node with -9 while a fork samples: the group still becomes whole, and no chain is sampled twice. */
import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { ServiceClient } from "../../service/index.ts";
import type { ResultRow } from "../../service/ledger/index.ts";
import { ScriptedEngine, type ScriptedReply, type WireRequest } from "../fakes/engines/scripted-engine.ts";
import { scratchFolder } from "../fakes/machine/scratch-folder.ts";
import { startCli } from "../fakes/processes/cli.ts";
import { runFile, writeTask } from "../fakes/rollouts/small-task.ts";

const place = scratchFolder("killed-trees");

/** Three turns: look, make the file, say so. */
function play({ messages }: WireRequest): ScriptedReply {
  const turns = messages.filter(({ role }) => role === "assistant").length;
  if (turns === 0) return { tool_calls: [{ name: "bash", arguments: '{"command":"cat README.txt"}' }] };
  return turns === 1 ? { tool_calls: [{ name: "bash", arguments: '{"command":"echo yes > done.txt"}' }] } : { text: "done" };
}

test("a service that is killed while a fork samples continues its trees: each leaf ends once, and no finished chain is sampled twice", {
  timeout: 300_000,
}, async (t) => {
  await mkdir(place, { recursive: true });
  await writeTask(place, "small");
  const [cut, killed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const calls: WireRequest[] = [];
  // The seventh call is the first one of a fork. It gets no answer before the service dies.
  await using engine = await ScriptedEngine.start((request) => {
    if (!request.tools?.length) return { text: "x" };
    if (calls.push(request) !== 7) return play(request);
    cut.resolve();
    return { ...play(request), before: killed.promise };
  });
  await writeFile(join(place, "run.yaml"), runFile({ engine: engine.url }));
  const start = async () => {
    const running = startCli(["service", "small", "-c", "run.yaml", "-p", "0", "--json", "--out", place], { cwd: place });
    t.after(() => running[Symbol.asyncDispose]());
    await running.until(() => running.stdout.includes("\n"));
    return running;
  };
  const first = await start();
  let id = "";
  {
    await using client = ServiceClient.of(join(place, "service"));
    const set = await client.set("s", { samples: 2, branching: { policy: "at_turns", turns: [1], leaves: 4, width: 2, depth: 1 } });
    id = set.id;
    await set.submit([{ group_key: "g", task: "small" }]);
    await set.drain();
    await cut.promise;
    await first.kill("SIGKILL");
    killed.resolve();
  }
  const second = await start();
  await using client = ServiceClient.of(join(place, "service"));
  const rows: ResultRow[] = [];
  for await (const { result } of (await client.setOf(id)).results()) rows.push(result);
  assert.deepEqual(
    rows
      .toSorted((one, other) => one.index - other.index)
      .map(({ state, reward, forked_from }) => [state, reward, forked_from?.turn ?? null]),
    [
      ["completed", 1, null],
      ["completed", 1, null],
      ["completed", 1, 1],
      ["completed", 1, 1],
    ],
    second.stderr,
  );
  assert.equal(calls.length, 3 + 3 + 1 + 2 + 2, "the one that was cut off is asked again, and nothing else");
  assert.equal((await second.kill("SIGTERM")).code, 0);
});
