/** The verbs of the command line; this list is the help. */
import { Command, CommanderError } from "commander";
import { version } from "../version.ts";
import { audit } from "./audit.ts";
import { check } from "./check.ts";
import { fail } from "./command-line.ts";
import { config } from "./config.ts";
import { diff } from "./diff.ts";
import { doctor } from "./doctor.ts";
import { exportCommand } from "./export.ts";
import { fidelity } from "./fidelity.ts";
import { plugin } from "./plugin.ts";
import { reap } from "./reap.ts";
import { record } from "./record.ts";
import { run } from "./run.ts";
import { serve } from "./serve.ts";
import { show } from "./show.ts";
import { terminal } from "./terminal.ts";

const verbs = [serve, record, run, doctor, check, show, diff, fidelity, audit, exportCommand, reap, config, plugin] as const;

/** Runs one command line, without the program's name, in the `terminal()`: leaves its exit code there and throws nothing. */
export async function main(args: string[]): Promise<void> {
  const program = new Command("alidade")
    .description(
      "Records unmodified agent harnesses at token level, runs them in sandboxes on graded tasks, and hands token-faithful trajectories to RL trainers.",
    )
    .version(version)
    .enablePositionalOptions()
    .showHelpAfterError("(add --help for the options)")
    .configureOutput({
      writeOut: (text) => void terminal().stdout.write(text),
      writeErr: (text) => void terminal().stderr.write(text),
    })
    .exitOverride();
  for (const verb of verbs) verb(program);
  try {
    await program.parseAsync(args, { from: "user" });
  } catch (error) {
    terminal().exitCode = exitCodeOf(error, program);
  }
}

function exitCodeOf(error: unknown, program: Command): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  // Asked of the verb, for a `--json` behind `record --` is the program's own.
  return fail(
    error,
    program.commands.some((command) => command.opts().json === true),
  );
}
