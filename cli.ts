/** The command line. One file a verb in commands/; this list is the help. */
import { Command, CommanderError } from "commander";
import { audit } from "./commands/audit.ts";
import { check } from "./commands/check.ts";
import { fail } from "./commands/command-line.ts";
import { config } from "./commands/config.ts";
import { diff } from "./commands/diff.ts";
import { doctor } from "./commands/doctor.ts";
import { exportCommand } from "./commands/export.ts";
import { fidelity } from "./commands/fidelity.ts";
import { reap } from "./commands/reap.ts";
import { record } from "./commands/record.ts";
import { run } from "./commands/run.ts";
import { serve } from "./commands/serve.ts";
import { show } from "./commands/show.ts";
import { toStoreError } from "./store/index.ts";
import { version } from "./version.ts";

const verbs = [serve, record, run, doctor, check, show, diff, fidelity, audit, exportCommand, reap, config] as const;

// A reader that has seen enough (`alidade export | head`) is no failure; a full disk is one, in a sentence.
process.stdout.on("error", (error: NodeJS.ErrnoException) =>
  process.exit(error.code === "EPIPE" ? 0 : fail(toStoreError("standard output", error), false)),
);
// Progress that nobody reads any more (`alidade run 2>&1 | head`, a terminal that was closed) ends no run.
process.stderr.on("error", () => undefined);

const program = new Command("alidade")
  .description(
    "Records unmodified agent harnesses at token level, runs them in sandboxes on graded tasks, and hands token-faithful trajectories to RL trainers.",
  )
  .version(version)
  .enablePositionalOptions()
  .showHelpAfterError("(add --help for the options)")
  .exitOverride();
for (const verb of verbs) verb(program);
for (const command of program.commands) command.exitOverride();

try {
  await program.parseAsync(process.argv);
} catch (error) {
  if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : 2;
  // Asked of the verb, for a `--json` behind `record --` is the program's own.
  else
    process.exitCode = fail(
      error,
      program.commands.some((command) => command.opts().json === true),
    );
}
