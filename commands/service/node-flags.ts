/** Flags of the verbs that make rollouts for a ledger, and the configuration that they come to. */
import { dirname, isAbsolute, join, resolve } from "node:path";
import type { Command } from "commander";
import { type Config, loadConfig } from "../../config.ts";
import { harnesses } from "../../harnesses/index.ts";
import type { EngineAddress } from "../../sandboxes/engines/engine-connection.ts";
import { toNumber } from "../command-line.ts";
import { addEngineFlags, type EngineFlags, enginesOf } from "../flags/engine-flags.ts";
import { dockerEngineOption, graderOption, sandboxWords, taskFormatOption } from "../flags/plug-in-flags.ts";
import { addSessionFlags, type SessionFlags, sessionOptionsGiven } from "../flags/session-flags.ts";
import { sayUnknownVariables } from "../flags/unknown-variables.ts";
import { terminal } from "../terminal.ts";

export type NodeFlags = SessionFlags &
  EngineFlags & {
    config?: string;
    harness?: string;
    sandbox?: string;
    dockerEngine?: EngineAddress[];
    unsafeHost?: boolean;
    grader?: string[];
    taskFormat?: string[];
    concurrency?: number;
    overcommit?: boolean;
    allowPublicNetwork?: boolean;
    out?: string;
    json?: boolean;
  };

export function addNodeFlags(command: Command): Command {
  return addSessionFlags(addEngineFlags(command))
    .option("-c, --config <file>", "run file: YAML with any of the keys of `alidade config --schema`")
    .option(
      "--harness <name>",
      `${harnesses.map(({ name }) => name).join(", ")}, or the file of a plug-in; a set may name another built-in one`,
    )
    .option("--sandbox <name>", sandboxWords)
    .addOption(dockerEngineOption())
    .option("--unsafe-host", "allow the process sandbox, which isolates nothing: a holder of the token runs commands as you")
    .addOption(graderOption())
    .addOption(taskFormatOption())
    .option("--concurrency <number>", "harnesses running at once", toNumber)
    .option("--overcommit", "run also where all sandboxes together may take more memory or disk than the machine has")
    .option("--allow-public-network", "allow tasks that ask for the whole public network (`environment.network: public`)")
    .option("-o, --out <folder>", "folder for what is recorded");
}

export async function nodeConfig(flags: NodeFlags, tasks: string[] = []): Promise<Config> {
  const config = await loadConfig({
    env: terminal().env,
    file: flags.config,
    overrides: {
      ...enginesOf(flags),
      harness: flags.harness,
      sandbox: flags.sandbox,
      docker_engines: flags.dockerEngine,
      unsafe_host: flags.unsafeHost,
      graders: flags.grader,
      task_formats: flags.taskFormat,
      ...sessionOptionsGiven(flags),
      concurrency: { run: flags.concurrency },
      overcommit: flags.overcommit,
      allow_public_network: flags.allowPublicNetwork,
      out: flags.out,
      tasks: tasks.length > 0 ? tasks.map((path) => resolve(path)) : undefined,
    },
  });
  sayUnknownVariables(config);
  const base = flags.config === undefined ? process.cwd() : dirname(resolve(flags.config));
  config.tasks = config.tasks.map((path) => (isAbsolute(path) ? path : join(base, path)));
  return config;
}
