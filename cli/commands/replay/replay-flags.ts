/** Flags of the verbs that replay a rollout. */
import { type Command, InvalidArgumentError, Option } from "commander";

export function addReplayFlags(command: Command): Command {
  return command
    .option("-r, --run <folder>", "folder of the run that holds it (default: the newest below runs/)")
    .option("-o, --out <folder>", "where the new run's folder is made", "runs")
    .addOption(
      new Option("--words <what>", "what other words than the recorded ones do: end the replay, or go_on with the recorded ones")
        .choices(["end", "go_on"])
        .default("go_on"),
    )
    .option("--unrepeatable", "replay also a task that reaches hosts or services, or says environment.repeatable: false")
    .option("--overcommit", "also where one sandbox may take more memory or disk than the machine has");
}

export function toTurn(text: string): number {
  if (!/^\d{1,6}$/.test(text)) throw new InvalidArgumentError("Give the number of a turn, as `alidade show` prints it.");
  return Number(text);
}

export function wholeNumber(text: string): number {
  if (!/^[1-9]\d{0,4}$/.test(text)) throw new InvalidArgumentError("Give a whole number of 1 or more.");
  return Number(text);
}
