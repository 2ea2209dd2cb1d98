/** `eval_script` of swebench 5. It prints the marks around the tests, but not how the test command ended. */
import { marks } from "../../graders/parsers/index.ts";
import { taskError } from "../task-error.ts";

/** Adds a line that prints how the tests ended. Throws if a mark is missing, because no result would be found then. */
export function markedScript(script: string, where: string): string {
  for (const mark of [marks.start, marks.end])
    if (!script.includes(mark)) throw taskError(where, "eval_script", `prints no line "${mark}": results are looked for between the marks`);
  const lines = script.split("\n");
  const end = lines.findLastIndex((line) => line.includes(marks.end));
  const said = [
    ...lines.slice(0, end),
    "task_tests_ended=$?",
    lines[end],
    `echo; echo "${marks.exit}: $task_tests_ended"`,
    ...lines.slice(end + 1),
  ];
  // The marks are shell comments that `set -x` prints; without it nothing would.
  return ["exec 2>&1", "set -x", ...said].join("\n");
}
