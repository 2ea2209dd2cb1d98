/** Which rollouts and sessions are meant: by task, reward, end and labels. */
import { type Command, InvalidArgumentError } from "commander";
import { toMatch } from "../../../base/schema/complaints/to-match.ts";
import type { Entry } from "../../../view/index.ts";
import { visibleText } from "../../../view/text/index.ts";

type Test = (entry: Entry) => boolean;
export type FilterFlags = { task?: Test; reward?: Test; end?: Test; label?: Test[] };

export function addFilters(command: Command): Command {
  return command
    .option("--task <glob>", "those of tasks with this id; * stands for any characters", byTask)
    .option(
      "--reward <condition>",
      "those with this reward: a number, one behind <, <=, > or >=, or `none` where nothing was measured",
      byReward,
    )
    .option("--end <glob>", "those that ended so: a stop reason, the code of an error, a mask reason, or a state such as run", byEnd)
    .option("--label <name=glob>", "those with this label; several times for several", (text, tests: Test[] = []) => [
      ...tests,
      byLabel(text),
    ]);
}

export function isMeant({ task, reward, end, label = [] }: FilterFlags, entry: Entry): boolean {
  return [task, reward, end, ...label].every((test) => test === undefined || test(entry));
}

function byTask(glob: string): Test {
  const fits = toMatch(glob);
  return ({ task_id }) => task_id !== null && fits(task_id);
}

function byEnd(glob: string): Test {
  const fits = toMatch(glob);
  return ({ end, mask_reason, state }) => [end, mask_reason, state].some((word) => word !== null && fits(word));
}

function byLabel(text: string): Test {
  const at = text.indexOf("=");
  if (at < 1) throw new InvalidArgumentError(`Give a name, = and a value, such as split=held-out, and not "${visibleText(text)}".`);
  const fits = toMatch(text.slice(at + 1));
  const name = text.slice(0, at);
  return ({ labels }) => Object.hasOwn(labels, name) && fits(labels[name] ?? "");
}

const condition = /^(<=|>=|<|>|=)?\s*(-?\d+(?:\.\d+)?)$/;

function byReward(text: string): Test {
  if (text === "none") return ({ reward }) => reward === null;
  const [, sign = "=", digits] = condition.exec(text) ?? [];
  if (digits === undefined) throw new InvalidArgumentError(`Give a number, >= and a number, or none, and not "${visibleText(text)}".`);
  const than = Number(digits);
  const holds: Record<string, (reward: number) => boolean> = {
    "=": (reward) => reward === than,
    "<": (reward) => reward < than,
    "<=": (reward) => reward <= than,
    ">": (reward) => reward > than,
    ">=": (reward) => reward >= than,
  };
  return ({ reward }) => reward !== null && holds[sign]?.(reward) === true;
}
