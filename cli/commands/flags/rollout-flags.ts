/** Flags of the verbs that make rollouts, and the configuration that they come to. */
import { dirname, isAbsolute, join, resolve } from "node:path";
import type { Command } from "commander";
import type { EngineAddress } from "../../../base/schema/container-engine.ts";
import type { NetworkAccess } from "../../../base/schema/network.ts";
import type { NamedGraderServer } from "../../../graders/remote/index.ts";
import { harnesses } from "../../../harnesses/index.ts";
import type { Config } from "../../config.ts";
import { toNumber } from "../command-line.ts";
import { addWatchFlags, type WatchFlags, watchOf } from "../watch/watch-flags.ts";
import { givenCommandConfig } from "./command-config.ts";
import { addEngineFlags, type EngineFlags, enginesOf } from "./engine-flags.ts";
import { dockerEngineOption, graderOption, graderServerOption, sandboxWords, taskFormatOption } from "./plug-in-flags.ts";
import { addSessionFlags, type SessionFlags, sessionOptionsGiven } from "./session-flags.ts";
import { verifierNetworkOption } from "./task-grants.ts";
import { addTeacherFlags, type TeacherFlags, teacherOf } from "./teacher-flags.ts";

export type RolloutFlags = SessionFlags &
  WatchFlags &
  EngineFlags &
  TeacherFlags & {
    config?: string;
    harness?: string;
    sandbox?: string;
    dockerEngine?: EngineAddress[];
    unsafeHost?: boolean;
    grader?: string[];
    graderServer?: NamedGraderServer[];
    taskFormat?: string[];
    concurrency?: number;
    overcommit?: boolean;
    allowPublicNetwork?: boolean;
    verifierNetwork?: NetworkAccess;
    out?: string;
    json?: boolean;
  };

/** `words` end the sentences that are not the same for all of them. */
export function addRolloutFlags(command: Command, words: { harness: string; unsafeHost: string; out: string }): Command {
  return addTeacherFlags(addSessionFlags(addWatchFlags(addEngineFlags(command))))
    .option("-c, --config <file>", "run file: YAML with any of the keys of `alidade config --schema`")
    .option("--harness <name>", `${harnesses.map(({ name }) => name).join(", ")}, or the file of a plug-in; ${words.harness}`)
    .option("--sandbox <name>", sandboxWords)
    .addOption(dockerEngineOption())
    .option("--unsafe-host", `allow the process sandbox, which isolates nothing${words.unsafeHost}`)
    .addOption(graderOption())
    .addOption(graderServerOption())
    .addOption(taskFormatOption())
    .option("--concurrency <number>", "harnesses running at once", toNumber)
    .option("--overcommit", "run also where all sandboxes together may take more memory or disk than the machine has")
    .option("--allow-public-network", "allow tasks that ask for the whole public network (`environment.network: public`)")
    .addOption(verifierNetworkOption())
    .option("-o, --out <folder>", `folder for ${words.out}`);
}

/** `more`: what a verb's own flags say. Tasks on the command line take the place of the run file's. */
export async function rolloutConfig(flags: RolloutFlags, tasks: string[], more: object = {}): Promise<Config> {
  return (await givenRolloutConfig(flags, tasks, more)).config;
}

/** The same, with the keys that were given. */
export async function givenRolloutConfig(
  flags: RolloutFlags,
  tasks: string[],
  more: object = {},
): Promise<{ config: Config; given: string[] }> {
  const { config, given } = await givenCommandConfig(flags.config, {
    overrides: {
      ...enginesOf(flags),
      ...teacherOf(flags),
      harness: flags.harness,
      sandbox: flags.sandbox,
      docker_engines: flags.dockerEngine,
      unsafe_host: flags.unsafeHost,
      graders: flags.grader,
      grader_servers: flags.graderServer,
      task_formats: flags.taskFormat,
      ...sessionOptionsGiven(flags),
      concurrency: { run: flags.concurrency },
      overcommit: flags.overcommit,
      allow_public_network: flags.allowPublicNetwork,
      verifier_network: flags.verifierNetwork,
      out: flags.out,
      ...watchOf(flags),
      tasks: tasks.length > 0 ? tasks.map(resolvePath) : undefined,
      ...more,
    },
  });
  // Paths in a run file are relative to it, wherever the command was called.
  const base = flags.config === undefined ? process.cwd() : dirname(resolve(flags.config));
  config.tasks = config.tasks.map((path) => (isAbsolute(path) ? path : join(base, path)));
  return { config, given };
}

function resolvePath(path: string): string {
  const [place = path, ...id] = path.split("#");
  return [resolve(place), ...id].join("#");
}
