/** A run whose every field is an attack: markup, terminal codes, marks that turn a line round, addresses, and a line of 10 MB. */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { assistant } from "./log-builder.ts";
import { viewedRollout } from "./viewed-run.ts";

const attack = `"><script>globalThis.hacked=1</script><img src=x onerror="globalThis.hacked=1"><a href="javascript:globalThis.hacked=1">x</a>\u001b[2J\u202e\u0000'\`\${1}`;
const svg = `data:image/svg+xml;base64,${Buffer.from("<svg onload='globalThis.hacked=1'/>").toString("base64")}`;
const longLine = "A".repeat(10_000_000);

export async function writeHostileRun(folder: string): Promise<void> {
  const { trajectory, record } = viewedRollout({
    ...{ at: 0, task_id: "t", group_id: "g", sample_index: 3, size: 2, reward: 0, turns: 4, words: 1, vocabulary: new Map() },
  });
  const hostile = {
    ...trajectory,
    task: { ...trajectory.task, id: attack },
    group: { ...trajectory.group, id: attack },
    harness: { name: attack, version: attack, config_hash: attack },
    labels: { [attack]: attack, __proto__x: attack },
    stop_reason: attack,
    mask_reason: attack,
    calls: trajectory.calls.map((call) => ({
      ...call,
      agent: attack,
      engine_model: attack,
      policy: { ...call.policy, start: { version: attack, step: 1 } },
    })),
    messages: Object.fromEntries(
      Object.entries(trajectory.messages).map(([id, message], at) => [
        id,
        at === 0
          ? { ...assistant(longLine), role: message.role }
          : {
              ...message,
              parts: [
                { type: "text", text: attack },
                { type: "image", url: svg },
                { type: "image", url: "http://evil.example/x.png" },
                { type: "image", url: `data:image/png;base64,${Buffer.from("<script>").toString("base64")}` },
                { type: "tool_call", id: attack, name: attack, arguments: attack, kind: "function" },
                {
                  type: "tool_result",
                  call_id: attack,
                  content: [
                    { type: "text", text: attack },
                    { type: "image", url: svg },
                  ],
                  is_error: true,
                },
              ],
            },
      ]),
    ),
    nodes: trajectory.nodes.map((node) => ({ ...node, policy_version: node.policy_version === null ? null : attack })),
  };
  const graded =
    record.verdict === null
      ? null
      : {
          ...record.verdict,
          grader: attack,
          evidence: {
            required: 3,
            failed_count: 9,
            failed: [{ name: attack, outcome: attack }],
            output_tail: longLine,
            report_problem: attack,
          },
        };
  const rolled = {
    ...record,
    task_id: attack,
    group_id: attack,
    harness: attack,
    harness_version: attack,
    stop_reason: attack,
    mask_reason: attack,
    verdict: graded,
    output_tail: attack,
  };
  await mkdir(join(folder, "sessions"), { recursive: true });
  await mkdir(join(folder, "vocabulary"), { recursive: true });
  await writeFile(join(folder, "trajectories.jsonl"), `${JSON.stringify(hostile)}\n<script>no record</script>\n`);
  await writeFile(join(folder, "rollouts.jsonl"), `${JSON.stringify(rolled)}\n`);
  const texts = Array.from({ length: 80 }, (_, id) => `${JSON.stringify({ id, text: attack })}\n`);
  await writeFile(join(folder, "vocabulary", "tok1.jsonl"), texts.join(""));
}

/** The pages of the one rollout that it holds. */
export const hostilePages = [
  "",
  "tasks",
  "rollout?id=ses0",
  "rollout?id=ses0&turn=1",
  "tokens?id=ses0",
  `group?${new URLSearchParams({ task: attack, group: attack })}`,
  "work?id=ses0",
  `?${new URLSearchParams({ task: attack })}`,
  `rollout?${new URLSearchParams({ id: attack })}`,
];
