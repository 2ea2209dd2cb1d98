/** Each line of a session's log in turn is damaged, in each way in which a line can be. */
import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import type { LogEntry } from "../../../base/schema/session-log.ts";
import { Trajectory } from "../../../base/schema/trajectory.ts";
import { DiskStore } from "../../../proxy/store/index.ts";
import { reconstruct, selectRows, verifyRows, verifyTrajectory } from "../../../reconstruct/index.ts";
import { scratchFolder } from "../../fakes/machine/scratch-folder.ts";
import { assistant, LogBuilder, system, user } from "../../fakes/records/log-builder.ts";

const folder = scratchFolder("damage");

const damages: Record<string, (line: string) => string> = {
  "cut off": (line) => line.slice(0, Math.floor(line.length * 0.7)),
  "no JSON at all": () => "\u0000\u0000\u0000",
  "of another schema": (line) => JSON.stringify({ ...JSON.parse(line), surprise: true }),
  "an enum of no schema": (line) =>
    JSON.stringify({ ...JSON.parse(line), tool_choice: {}, delivery: "lost", finish_reason: "lost", revision: "one" }),
};

/** Two roots; on the first a conversation of three turns, and a sibling of its second. */
function session(): LogBuilder {
  const log = new LogBuilder();
  const start = [system("be good"), user("fix it")];
  const tools = [{ name: "bash", parameters: null, kind: "function" as const }];
  const a = log.call({ messages: start, says: assistant("first words"), tools });
  const second = [...start, assistant("first words"), user("go on")];
  const b = log.call({ messages: second, says: assistant("second words"), parent: a, tools });
  log.call({ messages: [...second, assistant("second words"), user("and on")], says: assistant("third words"), parent: b, tools });
  log.call({ messages: [...start, assistant("first words"), user("another way")], says: assistant("fourth"), parent: a, tools });
  log.call({ messages: [user("a title please")], says: assistant("title") });
  return log;
}

async function damaged(entries: LogEntry[], at: number, damage: (line: string) => string): Promise<Trajectory> {
  await mkdir(folder, { recursive: true });
  const lines = entries.map((entry) => JSON.stringify(entry));
  lines[at] = damage(lines[at] as string);
  await writeFile(join(folder, "ses1.jsonl"), `${lines.join("\n")}\n`);
  return reconstruct(await new DiskStore(folder).read("ses1"));
}

/** The calls that a call's lists are stored after, itself first. */
function basesOf(entries: LogEntry[], callId: string): string[] {
  const begun = entries.find((entry) => entry.type === "call_begun" && entry.call_id === callId);
  const base = begun?.type === "call_begun" ? begun.messages.base_call_id : null;
  return [callId, ...(base === null ? [] : basesOf(entries, base))];
}

for (const [how, damage] of Object.entries(damages))
  test(`a line that is ${how} costs its call and those stored after it, is named, and changes no other`, async () => {
    const log = session();
    const whole = reconstruct(log.entries);
    for (const [at, entry] of log.entries.entries()) {
      if (entry.type === "opened" || entry.type === "refused") continue;
      const line = JSON.stringify(entry);
      if (damage(line) === line) continue;
      const trajectory = Trajectory.parse(JSON.parse(JSON.stringify(await damaged(log.entries, at, damage))));
      const what = `line ${at + 1} (${entry.type})`;
      assert.deepEqual(verifyTrajectory(trajectory, [...log.exchanges.values()]).mismatches, [], what);
      const selected = selectRows(trajectory);
      assert.deepEqual(verifyRows(trajectory, selected.rows), [], what);
      assert.equal(
        selected.tokens.sampled,
        selected.tokens.trained + Object.values(selected.tokens.excluded).reduce((a, b) => a + b, 0),
        what,
      );
      assert.ok(trajectory.fidelity.damaged.some(({ reason }) => reason.includes(`line ${at + 1} `)) || entry.type === "tools", what);
      const owner = "call_id" in entry ? entry.call_id : null;
      for (const call of whole.calls) {
        const isHit =
          owner !== null ? basesOf(log.entries, call.call_id).includes(owner) : entry.type === "tools" && call.tools_hash !== null;
        if (isHit) continue;
        const same = (one: Trajectory) =>
          one.nodes
            .filter((node) => node.kind === "sampled" && node.call_id === call.call_id && node.trainable)
            .flatMap((node) => node.token_ids);
        assert.deepEqual(same(trajectory), same(whole), `${what}: call ${call.call_id}`);
      }
      if (owner === null || how === "no JSON at all") continue;
      const trained = trajectory.nodes.filter((node) => node.call_id === owner && node.trainable);
      assert.deepEqual(trained, [], `${what}: the call that the line belongs to is not trained`);
      assert.ok(
        trajectory.fidelity.damaged.some((lost) => lost.call_id === owner),
        what,
      );
    }
  });

test("a log whose first line is damaged is no session, and the line is named", async () => {
  await assert.rejects(
    damaged(session().entries, 0, (line) => line.slice(1)),
    /ses1\.jsonl line 1 is not a record of ours/,
  );
  assert.match(await readFile(join(folder, "ses1.jsonl"), "utf8"), /^"type":"opened"/);
});
