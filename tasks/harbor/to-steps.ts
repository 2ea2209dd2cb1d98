/** `[[steps]]` of Harbor: what the agent gets for each, and how each is graded. */
import { lstat } from "node:fs/promises";
import { join } from "node:path";
import type { Environment, GraderSpec, TaskStep } from "../../base/schema/task.ts";
import { exists, folderBelow } from "../host-path.ts";
import { taskError } from "../task-error.ts";
import type { FolderOrder, PlacedStep } from "./folder-order.ts";
import { goldOf } from "./gold-of.ts";
import { textOf, withoutCanary } from "./read-config.ts";
import type { TaskConfig } from "./task-config.ts";
import { agentNetwork, stepSeconds, toHealthcheck, userOf } from "./to-environment.ts";
import { testNetwork, toVerifier } from "./to-verifier.ts";

export function placedSteps({ steps }: TaskConfig): PlacedStep[] {
  return (steps ?? []).map((config, index) => ({ config, index }));
}

type Stepped = { instruction: string; grader: GraderSpec; steps: (Omit<TaskStep, "gold_script"> & { gold_script: unknown })[] };

/** One sandbox has one user and one network: a step that asks for another one is refused by its field. */
export async function toSteps(order: FolderOrder, placed: readonly PlacedStep[], environment: Environment): Promise<Stepped> {
  const steps: Stepped["steps"] = [];
  const graded: GraderSpec[string][] = [];
  for (const step of placed) {
    assertSame(order, step, environment);
    steps.push(await toStep(order, step));
    const { name, verifier, min_reward } = step.config;
    const least = typeof min_reward === "number" ? { reward: min_reward } : min_reward;
    graded.push({ name, grader: await toVerifier(order, step), grade_seconds: verifier.timeout_sec, min_reward: least });
  }
  const combine = order.config.multi_step_reward_strategy ?? "mean";
  return { instruction: steps[0]?.instruction ?? "", grader: { kind: "steps", combine, steps: graded }, steps };
}

async function toStep(order: FolderOrder, { config, index }: PlacedStep): Promise<Stepped["steps"][number]> {
  const { folder, file } = order;
  const [place, field] = [`steps/${config.name}`, `steps.${index}.name`];
  if (!(await exists(join(folder, place)))) throw taskError(file, field, `is "${config.name}", and there is no folder ${place}`);
  const workdir = `${place}/workdir`;
  const files = (await exists(join(folder, workdir))) ? await folderBelow(folder, workdir, file, field) : null;
  const setUp = await lstat(join(folder, workdir, "setup.sh")).catch(() => null);
  return {
    name: config.name,
    instruction: withoutCanary(await textOf(join(folder, place, "instruction.md"))),
    files,
    setup: setUpOf(index, setUp?.isFile() === true),
    healthcheck: config.healthcheck && toHealthcheck(config.healthcheck),
    agent_seconds: stepSeconds(config, order.config.agent),
    gold_script: await goldOf(order, [`${place}/solution`, "solution"]),
  };
}

/** Harbor takes the logs of a step away before the next one. */
const emptyLogs = "find /logs/agent /logs/artifacts -mindepth 1 -delete 2>/dev/null";

function setUpOf(index: number, hasScript: boolean): string[] | null {
  const script = hasScript ? ["bash ./setup.sh"] : [];
  if (index === 0) return hasScript ? ["sh", "-c", ...script] : null;
  return ["sh", "-c", [emptyLogs, ...(hasScript ? script : ["true"])].join("; ")];
}

function assertSame(order: FolderOrder, step: PlacedStep, { user, network, grading_network }: Environment): void {
  const { file, config, source } = order;
  const within = `steps.${step.index}`;
  const { agent } = step.config;
  const why = "all steps have one sandbox: write what the task says, or remove it";
  if (agent.user !== null && userOf(agent.user, source) !== user)
    throw taskError(file, `${within}.agent.user`, `is ${JSON.stringify(agent.user)}, and the task's agent is ${user}: ${why}`);
  if (!isSame(agentNetwork(order, step), network))
    throw taskError(file, `${within}.agent.network_mode`, `is ${JSON.stringify(agent.network_mode)}: ${why}`);
  if (!isSame(testNetwork(order, step, ["environment", config.environment]), grading_network))
    throw taskError(file, `${within}.verifier.network_mode`, `is another one than the first step's: ${why}`);
}

function isSame(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
