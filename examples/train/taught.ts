/** The taught policy of `npm run train`, which plays in `npm run demo` as it is. docs/learning.md says what it was taught. */
import { readdirSync } from "node:fs";
import { join } from "node:path";

/** Folder with `config.json` and `model.safetensors`. */
export const taughtModel = join(import.meta.dirname, "model");

/** Folders of the tasks that it can do, sorted by name. */
export const taughtTasks = readdirSync(join(import.meta.dirname, "tasks"))
  .sort()
  .map((name) => join(import.meta.dirname, "tasks", name));

/** A policy may break down and talk without end. These budgets end its rollout, which is graded as it is. */
export const taughtBudgets = { max_sampled_tokens: 600, max_turns: 8 };

/** The harnesses that the policy was taught, each with its shell tool and the tool's argument for a command. */
const shells = {
  pi: { tool: "bash", argument: "command" },
  codex: { tool: "exec_command", argument: "cmd" },
  "claude-code": { tool: "Bash", argument: "command" },
} as const;
export type TaughtHarness = keyof typeof shells;
export const taughtHarnesses = Object.keys(shells) as TaughtHarness[];

/** Returns the call that makes `names.js` print names in the style `way`. */
export function taughtCall(harness: TaughtHarness, way: string): string {
  const { tool, argument } = shells[harness];
  return `<tool_call>\n{"name": "${tool}", "arguments": {"${argument}": "sed -i s/plain/${way}/ style.js"}}\n</tool_call>`;
}
