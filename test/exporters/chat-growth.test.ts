/** What `chat` holds of a session grows with its calls, not with calls × calls. Links are counted, not bytes. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { CallRecord } from "../../base/schema/trajectory.ts";
import { earlierTurns, toConversations } from "../../exporters/chat.ts";
import { reconstruct } from "../../reconstruct/index.ts";
import { assistant, LogBuilder, user } from "../fakes/records/log-builder.ts";

function session(calls: number): LogBuilder {
  const log = new LogBuilder();
  let messages = [user("begin")];
  for (let turn = 0; turn < calls; turn++) {
    const says = assistant(`step ${turn}`);
    log.call({ messages, says });
    messages = [...messages, says, user(`result ${turn}`)];
  }
  return log;
}

/** Links of turns that are held, each once. */
function held(calls: CallRecord[]): number {
  const links = new Set<object>();
  for (const chain of earlierTurns(calls).values())
    for (let link = chain; link !== null && !links.has(link); link = link.before) links.add(link);
  return links.size;
}

test("twice the calls of an append-only session hold about twice the links, and are one row that teaches each turn", () => {
  const [once, twice] = [reconstruct(session(100).entries), reconstruct(session(200).entries)];
  const growth = held(twice.calls) / held(once.calls);
  assert.ok(growth < 2.2, `grew ${growth} times`);
  const { rows } = toConversations(twice);
  assert.equal(rows.length, 1);
  assert.equal(rows[0]?.messages.filter(({ weight }) => weight === 1).length, 200);
});
