/** What pages count of a session that is still open. */
import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import type { Entry } from "../../../view/run/entries.ts";
import { OpenSessions } from "../../../view/run/open-sessions.ts";
import { scratchFolder } from "../../fakes/machine/scratch-folder.ts";
import { assistant, LogBuilder, user } from "../../fakes/records/log-builder.ts";

const scratch = scratchFolder("open-sessions");

test("an open fork's own tokens are counted, and not those that it replays", async () => {
  const log = new LogBuilder();
  const says = assistant("one two three");
  const parent = log.call({ messages: [user("hi")], says, replayed_from: "call00000000000000000000" });
  log.call({ messages: [user("hi"), says, user("on")], says: assistant("four"), parent });
  await mkdir(scratch, { recursive: true });
  await writeFile(join(scratch, "sestest.jsonl"), log.entries.map((entry) => `${JSON.stringify(entry)}\n`).join(""));
  const open = new OpenSessions(scratch);
  await open.readOn(["sestest"]);
  const { turns, sampled_tokens } = open.withCounts({ session_id: "sestest", turns: 0 } as Entry);
  assert.deepEqual([turns, sampled_tokens], [2, log.said(assistant("four")).length]);
});
