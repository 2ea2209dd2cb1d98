/** A task's own preparation of its sandbox, with a network of its own that is cut when it ends. */
import { AlidadeError } from "../base/errors.ts";
import { readFolder } from "../base/files/file-tree.ts";
import { refusedHosts } from "../base/schema/refused-hosts.ts";
import type { Environment, Limits, TaskStep } from "../base/schema/task.ts";
import { checkOfTask, untilReady } from "./healthcheck.ts";
import { type NetworkRules, openNetwork } from "./network/open-network.ts";
import type { Sandbox } from "./sandbox.ts";
import { envInside } from "./task-spec.ts";

/** What a person needs of its output. */
const tailCharacters = 1_000;

type Prepared = { environment: Environment; limits: Limits };

/** Runs `environment.setup` to its end. Throws `sandbox_unavailable` where it fails: a host that it needs may be down. */
export async function setUp(sandbox: Sandbox, task: Prepared, rules: NetworkRules, signal: AbortSignal): Promise<void> {
  const { setup } = task.environment;
  if (setup === null) return;
  await using network = await openNetwork(sandbox, "setup", setup.network, rules);
  await runStep(sandbox, task, { name: "environment.setup", command: setup.command, user: setup.user, env: network.env, rules }, signal);
}

/** Runs `environment.conceal` before an agent gets the sandbox. Throws as `setUp` does. */
export async function conceal(sandbox: Sandbox, task: Prepared, signal: AbortSignal): Promise<void> {
  const { conceal: command } = task.environment;
  if (command !== null)
    await runStep(sandbox, task, { name: "environment.conceal", command, user: "sandbox", env: {}, rules: null }, signal);
}

/**
 * What stands before the agent begins a step: its files, its own command, its healthcheck. `env`: beside the environment's.
 * Throws as `setUp` does, and `sandbox_unhealthy`.
 */
export async function beginStep(
  sandbox: Sandbox,
  task: Prepared,
  { name, files, setup, healthcheck }: TaskStep,
  env: Record<string, string>,
  signal: AbortSignal,
): Promise<void> {
  if (files !== null) await sandbox.writeFiles(await readFolder(files));
  if (setup !== null)
    await runStep(sandbox, task, { name: `setup of the step ${name}`, command: setup, user: "sandbox", env, rules: null }, signal);
  await untilReady(sandbox, checkOfTask(healthcheck), null, signal);
}

type PreparationStep = {
  name: string;
  command: string[];
  user: "sandbox" | "root";
  env: Record<string, string>;
  rules: NetworkRules | null;
};

async function runStep(
  sandbox: Sandbox,
  { environment, limits }: Prepared,
  { name, command, user, env, rules }: PreparationStep,
  signal: AbortSignal,
): Promise<void> {
  const { exit_code, stdout, stderr, timed_out } = await sandbox.exec(command, {
    cwd: environment.workdir,
    ...(user === "root" && { user }),
    env: { ...envInside(environment, sandbox), ...env },
    timeout_ms: limits.init_seconds * 1000,
    keep_output: "end",
    signal,
  });
  if (exit_code === 0) return;
  const how = timed_out ? `did not end within ${limits.init_seconds} s (limits.init_seconds)` : `ended with exit code ${exit_code}`;
  const said = `${stdout}\n${stderr}`.trim().slice(-tailCharacters);
  const refused = rules === null ? "" : refusedHosts(rules.log.use(), "setup");
  throw new AlidadeError("sandbox_unavailable", `${name} ${how}: ${said || "it printed nothing"}${refused}`, {
    param: name,
  });
}
