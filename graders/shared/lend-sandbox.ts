/**
 * Lends an agent's sandbox to graders. Its own processes have ended. If the task keeps them, they stand still, and go on when
 * the loan begins. Its services run all the time.
 */
import { AlidadeError, messageOf } from "../../base/errors.ts";
import { isIsolated } from "../../base/schema/rollout.ts";
import type { Task } from "../../base/schema/task.ts";
import type { AfterFreeze, Sandbox } from "../../sandboxes/index.ts";
import { NetworkLog, type NetworkRules, openNetwork } from "../../sandboxes/network/index.ts";
import type { GradeContext } from "../grader.ts";
import { keepsProcesses } from "./place-to-grade.ts";
import { standStill } from "./stand-still.ts";

/** The sandbox outlives each loan. During a loan it has the network of gradings, so close the agent's network first. */
export function lendSandbox(sandbox: Sandbox, task: Task, rules: NetworkRules): NonNullable<GradeContext["lend"]> {
  const { environment } = task;
  return async () => {
    await goOn(sandbox);
    const log = new NetworkLog(rules.log);
    const network = await openNetwork(sandbox, "grading", environment.grading_network, { ...rules, log });
    const isolation = isIsolated(sandbox.facts.isolation) ? "shared" : "none";
    return {
      id: sandbox.id,
      facts: { ...sandbox.facts, isolation },
      network: log,
      path: (inside) => sandbox.path(inside),
      exec: (argv, options = {}) => sandbox.exec(argv, { ...options, env: { ...network.env, ...options.env } }),
      writeFiles: (files, folder) => sandbox.writeFiles(files, folder),
      changes: (paths, options) => sandbox.changes(paths, options),
      putEntries: (entries) => sandbox.putEntries(entries),
      readFiles: (folder, bounds) => sandbox.readFiles(folder, bounds),
      openDoor: (onConnection, port) => sandbox.openDoor(onConnection, port),
      connect: (service, port, within) => sandbox.connect(service, port, within),
      start: (service, argv, within) => sandbox.start(service, argv, within),
      freeze: (next) => (keepsProcesses(task) ? keepStill(sandbox, next) : sandbox.freeze(next)),
      [Symbol.asyncDispose]: () => Promise.resolve(network[Symbol.asyncDispose]()).catch(() => undefined),
    };
  };
}

/** Suspends the kept processes: another grading may need them. Between two commands of one grading they run on. */
async function keepStill(sandbox: Sandbox, next: AfterFreeze | undefined): Promise<void> {
  if (next !== "commands") await standStill(sandbox);
}

/** Resumes a sandbox that a freeze may have suspended. No work can prevent that, so if it fails the sandbox is lost. */
async function goOn(sandbox: Sandbox): Promise<void> {
  try {
    await sandbox.resume?.();
  } catch (cause) {
    const message = `the agent's sandbox did not go on for its grading: ${messageOf(cause)}`;
    throw new AlidadeError("sandbox_died", message, { cause });
  }
}
