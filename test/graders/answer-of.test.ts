/** What an agent answered in words, and how a grader gets it. */
import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { Trajectory } from "../../base/schema/trajectory.ts";
import { answerOf } from "../../graders/answer-of.ts";
import { pickBackend } from "../../sandboxes/registry.ts";
import { runner } from "../fakes/rollouts/small-run.ts";
import { solve } from "../fakes/rollouts/small-task.ts";

const call = (ordinal: number, more: object = {}) => ({
  ordinal,
  agent: "main",
  request_class: "main",
  outcome: "delivered",
  other_policy: false,
  output: `m${ordinal}`,
  ...more,
});
const saying = (text: string) => ({ role: "assistant", parts: text === "" ? [] : [{ type: "text", text }] });

function trajectoryOf(calls: object[]): Trajectory {
  return { calls, messages: { m0: saying("first"), m1: saying("second"), m2: saying("") } } as unknown as Trajectory;
}

test("the answer is the text of the main agent's last turn that its harness got", () => {
  assert.equal(answerOf(trajectoryOf([call(1), call(0)])), "second");
  assert.equal(answerOf(trajectoryOf([call(0), call(1), call(2)])), "");
  assert.equal(answerOf(trajectoryOf([])), null);
  for (const not of [
    { agent: "helper" },
    { request_class: "title" },
    { outcome: "undelivered" },
    { outcome: "failed" },
    { other_policy: true },
    { output: null },
  ])
    assert.equal(answerOf(trajectoryOf([call(0), call(1, not)])), "first", JSON.stringify(not));
});

test("a script grades what the agent said, for the session is reconstructed before it is graded", { timeout: 300_000 }, async (t) => {
  const place = await mkdtemp(join(tmpdir(), "alidade-answer-"));
  t.after(() => rm(place, { recursive: true }));
  await mkdir(join(place, "small"));
  const grader = `grep -qx "It is done." "$ALIDADE_ANSWER" && echo '{"reward":1}' || echo '{"reward":0}'`;
  await writeFile(
    join(place, "small", "task.yaml"),
    `task_id: small\ninstruction: "Say that it is done."\nlimits: { agent_seconds: 30, grade_seconds: 20, memory_mb: 256, disk_mb: 64 }\ngrader: ${JSON.stringify({ kind: "script", command: ["sh", "-c", grader] })}\n`,
  );
  for (const [text, reward] of [
    ["It is done.", 1],
    ["It is not.", 0],
  ] as const) {
    const run = await runner(t, place, {
      path: join(place, `run${reward}`),
      retries: 0,
      reply: (request) => (solve(request).tool_calls ? solve(request) : { text }),
    });
    const [record] = await run((await pickBackend("process", t.signal)).backend);
    assert.deepEqual([record?.verdict?.status, record?.verdict?.reward], ["graded", reward], JSON.stringify(record?.verdict));
  }
});
