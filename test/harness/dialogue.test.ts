/** Conversations of the real programs with a user: each message gets a process of its own, and the tokens continue exactly. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { harnesses } from "../../harnesses/index.ts";
import { talked } from "../fakes/rollouts/talked.ts";
import { shellCall } from "../fakes/tools/shell-call.ts";
import { installedPack } from "./installed-pack.ts";

/** Three processes. Each starts in about a second, on a loaded machine in ten. */
const timeout = 300_000;

for (const harness of harnesses.filter(({ resumes }) => resumes))
  test(`${harness.name} continues its conversation when the user answers, in one trace`, { timeout }, async (t) => {
    if ((await installedPack(t, harness)) === null) return;
    const answers = ['@done.txt, /please:\n--help "it"', "Is it made? -- yes", "#STOP#"];
    const { record, trajectory, agent, customer } = await talked(t, {
      harness,
      limits: { agent_seconds: 240, memory_mb: 4_096 },
      user: { stop: ["#STOP#"] },
      agent: [
        { text: "Which file?" },
        (request) => ({ tool_calls: [{ id: "c1", ...shellCall(request, "echo yes > done.txt; echo it is there") }] }),
        { text: "It is made." },
        { text: "Yes." },
      ],
      customer: answers.map((text) => ({ text })),
    });
    assert.deepEqual([record.error, record.verdict?.reward], [null, 1], record.output_tail ?? "");
    assert.deepEqual([agent.length, customer.length, record.user?.turns, record.user?.end], [4, 3, 3, "stop"]);
    const last = JSON.stringify(agent.at(-1)?.messages);
    for (const said of ["Make done.txt for small.", "Which file?", answers[0] ?? "", "it is there", answers[1] ?? ""])
      assert.ok(last.includes(JSON.stringify(said).slice(1, -1)), `${said} is in the last request`);
    assert.ok(trajectory);
    const { fidelity, traces } = trajectory;
    assert.deepEqual(
      [traces.length, fidelity.matches, fidelity.row_inflation],
      [1, { root: 1, exact: 3 }, 1],
      JSON.stringify(fidelity.causes),
    );
    assert.equal(fidelity.trainable_tokens, fidelity.sampled_tokens);
  });
