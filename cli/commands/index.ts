/** The verbs of the command line; this list is the help. A verb's code is loaded when a command line names it. */
import { Command, CommanderError } from "commander";
import { AlidadeError } from "../../base/errors.ts";
import { version } from "../../base/version.ts";
import { fail, print } from "./command-line.ts";
import { terminal } from "./terminal.ts";

type Verb = { name: string; summary: string; load: () => Promise<(program: Command) => void> };

const verbs: readonly Verb[] = [
  {
    name: "serve",
    summary: "run the proxy and print how to point at it",
    load: async () => (await import("./proxy/serve.ts")).serve,
  },
  {
    name: "record",
    summary: "run a program through the proxy and keep its trajectory",
    load: async () => (await import("./proxy/record.ts")).record,
  },
  {
    name: "run",
    summary: "run tasks through a harness and grade them",
    load: async () => (await import("./run.ts")).run,
  },
  {
    name: "init",
    summary: "write a task, a harness or a run to begin with",
    load: async () => (await import("./init/init.ts")).init,
  },
  {
    name: "service",
    summary: "take rollouts from trainers over HTTP, and hand out what came of them",
    load: async () => (await import("./service/service.ts")).service,
  },
  {
    name: "node",
    summary: "make rollouts for a service's ledger in Postgres, beside other machines",
    load: async () => (await import("./service/node.ts")).node,
  },
  {
    name: "status",
    summary: "say how a service is: counts, ages, nodes, failures",
    load: async () => (await import("./service/status.ts")).status,
  },
  {
    name: "results",
    summary: "print what came of a service's rollouts, as they end",
    load: async () => (await import("./service/results.ts")).results,
  },
  {
    name: "doctor",
    summary: "look at an inference server before training on it",
    load: async () => (await import("./proxy/doctor.ts")).doctor,
  },
  {
    name: "check",
    summary: "prove that tasks grade their gold patch 1 and no change 0",
    load: async () => (await import("./check.ts")).check,
  },
  {
    name: "regrade",
    summary: "grade the works that a run kept again, without their agents",
    load: async () => (await import("./regrade.ts")).regrade,
  },
  {
    name: "score",
    summary: "have a teacher score what a run sampled, for distillation",
    load: async () => (await import("./records/score.ts")).score,
  },
  {
    name: "replay",
    summary: "drive a harness through a rollout's recorded turns again, without an engine",
    load: async () => (await import("./replay/replay.ts")).replay,
  },
  {
    name: "fork",
    summary: "sample a rollout anew from one of its turns",
    load: async () => (await import("./replay/fork.ts")).fork,
  },
  {
    name: "value",
    summary: "how often a rollout is solved from each of its turns",
    load: async () => (await import("./replay/value.ts")).value,
  },
  {
    name: "ls",
    summary: "list runs, rollouts and sessions, by task, reward, end and label",
    load: async () => (await import("./ls.ts")).ls,
  },
  {
    name: "stats",
    summary: "mean reward and pass@k, by task and policy step, with intervals",
    load: async () => (await import("./records/stats.ts")).stats,
  },
  {
    name: "show",
    summary: "print one session: turns, tool calls, tokens, mask, reward, branches",
    load: async () => (await import("./records/show.ts")).show,
  },
  {
    name: "view",
    summary: "read a run in the browser: why, tokens, groups, figures",
    load: async () => (await import("./view/view.ts")).view,
  },
  {
    name: "diff",
    summary: "align two sessions token by token and show where they part",
    load: async () => (await import("./records/diff.ts")).diff,
  },
  {
    name: "fidelity",
    summary: "why contexts part in a run, what it costs, and what to do about it",
    load: async () => (await import("./records/fidelity.ts")).fidelity,
  },
  {
    name: "audit",
    summary: "score a run's samples again and compare",
    load: async () => (await import("./records/audit.ts")).audit,
  },
  {
    name: "export",
    summary: "write a run's trajectories in a trainer's format",
    load: async () => (await import("./records/export.ts")).exportCommand,
  },
  {
    name: "tasks",
    summary: "list, show, validate and make tasks, and write prompts for a trainer's data loader",
    load: async () => (await import("./tasks/tasks.ts")).tasks,
  },
  {
    name: "images",
    summary: "prepare, list and prune the images that sandboxes are made from",
    load: async () => (await import("./images/images.ts")).images,
  },
  {
    name: "reap",
    summary: "remove sandboxes that dead processes left behind",
    load: async () => (await import("./reap.ts")).reap,
  },
  {
    name: "config",
    summary: "print the configuration, or its schema",
    load: async () => (await import("./config.ts")).config,
  },
  {
    name: "plugin",
    summary: "check a file that is an engine, harness, grader, exporter, sandbox, task format or allocation policy",
    load: async () => (await import("./plugin.ts")).plugin,
  },
  {
    name: "completion",
    summary: "print a script that completes verbs and flags in bash, zsh or fish",
    load: async () => (await import("./completion.ts")).completion(wholeProgram),
  },
];

/** Every verb of the program, as for a completion of any of them. */
async function wholeProgram(): Promise<Command> {
  const program = new Command("alidade").enablePositionalOptions();
  for (const verb of verbs) await add(verb, program, [verb.name]);
  return program;
}

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
  for (const verb of verbs) await add(verb, program, args);
  try {
    await program.parseAsync(args, { from: "user" });
  } catch (error) {
    terminal().exitCode = exitCodeOf(error, program, args);
  }
}

/** A verb's name stands first, or behind `help`. Of the others the help has a name and a summary. */
async function add({ name, summary, load }: Verb, program: Command, args: string[]): Promise<void> {
  if (!args.slice(0, nameWithin).includes(name)) program.command(name).summary(summary);
  else {
    (await load())(program);
    program.commands.find((command) => command.name() === name)?.summary(summary);
  }
}

/** `help`, `--` and the verb. */
const nameWithin = 3;

function exitCodeOf(error: unknown, program: Command, args: string[]): number {
  if (error instanceof CommanderError) {
    if (error.exitCode !== 0 && asksJsonBefore(args)) print(JSON.stringify({ error: wrongWords(error.message).toJSON() }));
    return error.exitCode === 0 ? 0 : 2;
  }
  // Asked of the verb, for a `--json` behind `record --` is the program's own.
  return fail(error, asksJson(program));
}

/** The words that commander refuses; which of them it has taken by then depends on their order. */
const asksJsonBefore = (args: string[]): boolean =>
  args.slice(0, args.includes("--") ? args.indexOf("--") : args.length).includes("--json");

function wrongWords(message: string): AlidadeError {
  const flag = /--([a-z][a-z-]*)/.exec(message)?.[1]?.replaceAll("-", "_") ?? null;
  return new AlidadeError("config_invalid", message.replace(/^error: /, ""), { param: flag });
}

function asksJson(command: Command): boolean {
  return command.opts().json === true || command.commands.some(asksJson);
}
