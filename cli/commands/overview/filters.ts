/** The flags that say which rollouts and sessions are meant. */
import { type Command, InvalidArgumentError } from "commander";
import { messageOf } from "../../../base/errors.ts";
import { type Entry, type EntryTest, filters } from "../../../view/index.ts";
import { visibleText } from "../../../view/text/index.ts";

export type FilterFlags = { task?: EntryTest; reward?: EntryTest; end?: EntryTest; label?: EntryTest[] };

export function addFilters(command: Command): Command {
  return command
    .option("--task <glob>", "those of tasks with this id; * stands for any characters", asFlag("task"))
    .option(
      "--reward <condition>",
      "those with this reward: a number, one behind <, <=, > or >=, or `none` where nothing was measured",
      asFlag("reward"),
    )
    .option(
      "--end <glob>",
      "those that ended so: a stop reason, the code of an error, a mask reason, or a state such as run",
      asFlag("end"),
    )
    .option("--label <name=glob>", "those with this label; several times for several", (text, tests: EntryTest[] = []) => [
      ...tests,
      asFlag("label")(text),
    ]);
}

export function isMeant({ task, reward, end, label = [] }: FilterFlags, entry: Entry): boolean {
  return [task, reward, end, ...label].every((test) => test === undefined || test(entry));
}

function asFlag(name: keyof typeof filters): (text: string) => EntryTest {
  return (text) => {
    try {
      return filters[name](text);
    } catch (error) {
      throw new InvalidArgumentError(visibleText(messageOf(error)));
    }
  };
}
