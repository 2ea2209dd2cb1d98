/** A test line as a command of our runner, which can run the same tests apart from the work. */
import { canRunApart } from "../../graders/parsers/index.ts";
import type { HowTested } from "./draft-task.ts";
import { testCommand } from "./test-command.ts";

/** null: the line is another framework's, needs a shell, or says what our runner cannot do. */
export function apartCommand({ test, parser }: Pick<HowTested, "test" | "parser">): string[] | null {
  const words = testCommand(test);
  if (words.includes("{runner}")) return canRunApart({ parser, command: words }) ? words : null;
  if (parser !== "pytest" && parser !== "unittest") return null;
  const [python, args] = argumentsOf(words, parser);
  const own = args === null ? null : parser === "pytest" ? pytestArguments(args) : unittestArguments(args);
  return own === null ? null : [python, "{runner}", ...own];
}

/** `pytest …`, `python -m pytest …`, `python3 -m unittest …`: the interpreter, and what stands behind the framework's name. */
function argumentsOf(words: string[], framework: string): [python: string, args: string[] | null] {
  const [first = "", dash, module, ...rest] = words;
  if (first === framework && framework === "pytest") return ["python3", words.slice(1)];
  const isPython = /^python3?$/.test(first) && dash === "-m" && module === framework;
  return [first, isPython ? rest : null];
}

/** What the log would show is of no use to a report of our own. */
function pytestArguments(args: string[]): string[] {
  return args.filter((word) => !/^-(?:v+|q+|r\w+|-verbose|-quiet|-no-header|-tb=\w+|-color=\w+)$/.test(word));
}

/** All tests, or those that discovery finds: `discover -s tests -t .`, `discover tests`. Names of modules are not understood. */
function unittestArguments(args: string[]): string[] | null {
  const words = args.filter((word) => !/^-(?:v|q|f|b|-verbose|-quiet|-failfast|-buffer)$/.test(word));
  if (words.length === 0) return [];
  if (words.shift() !== "discover") return null;
  const found = /^(?:(?:-s )?([\w./]+))?(?: -t ([\w./]+))?$/.exec(words.join(" "));
  if (found === null) return null;
  const [, start = ".", top = start] = found;
  return ["-t", top, start];
}
