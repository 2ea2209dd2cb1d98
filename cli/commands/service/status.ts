/** `alidade status`: how a service is: its sets, nodes and failures. */
import { type Command, InvalidArgumentError, Option } from "commander";
import type { Health } from "../../../proxy/control/index.ts";
import { RolloutSet, type SetStepFigures } from "../../../service/index.ts";
import type { NodeState, SetState } from "../../../service/ledger/index.ts";
import { table, visibleText } from "../../../view/text/index.ts";
import { print } from "../command-line.ts";
import { evaluationText } from "../overview/evaluation-text.ts";
import { figuresTable } from "../overview/figures-table.ts";
import { type AskFlags, addAskFlags, askedPlace, clientAt, serviceAddress } from "./ask-service.ts";

type StatusFlags = AskFlags & { json?: boolean; figures?: number };
/** `figures`: where they were asked for, of each set, in the order of `sets`. */
type ServiceStatus = { url: string; health: Health & { nodes: NodeState[] }; sets: SetState[]; figures?: SetStepFigures[] };

export function status(program: Command): void {
  addAskFlags(program.command("status"))
    .description("Says how a service is: counts and ages of its sets, its nodes, and failures by code.")
    .addOption(
      new Option(
        "--figures [steps]",
        "figures of each set by policy step (docs/figures.md), of so many of the latest steps; of an evaluation pass@k",
      )
        .preset("20")
        .argParser(toSteps),
    )
    .option("--json", "print one JSON object with health and sets, and the figures that were asked for")
    .addHelpText("after", "\nExamples:\n  alidade status\n  alidade status --url https://rollouts.example --token-env READER --json")
    .action(async (flags: StatusFlags) => {
      const found = await statusOf(flags);
      print(flags.json ? JSON.stringify(found) : textOf(found));
    });
}

async function statusOf(flags: StatusFlags): Promise<ServiceStatus> {
  const { url } = await serviceAddress(askedPlace(flags));
  await using client = await clientAt(askedPlace(flags), { patience: 0 });
  const health = await client.health();
  const sets = await client.sets();
  if (flags.figures === undefined) return { url, health, sets };
  const figures: SetStepFigures[] = [];
  for (const state of sets) figures.push(await new RolloutSet(client, state).figures({ last: flags.figures }));
  return { url, health, sets, figures };
}

function toSteps(text: string): number {
  if (/^[1-9]\d{0,2}$|^1000$/.test(text)) return Number(text);
  throw new InvalidArgumentError("Give a whole number of steps from 1 to 1000.");
}

function textOf({ url, health, sets, figures }: ServiceStatus): string {
  const { status, reason, nodes } = health;
  return [
    `service ${url}: ${status}${reason === null ? "" : `, ${reason}`}`,
    sets.length === 0 ? "no sets" : table(setHead, sets.map(setRow)),
    nodes.length === 0 ? "no nodes" : table(nodeHead, nodes.map(nodeRow)),
    ...failuresOf(sets),
    ...sets.flatMap(aheadOf),
    ...sets.flatMap(parkedOf),
    ...(figures ?? []).map((found, at) => figuresText(visibleText(sets[at] ? nameOf(sets[at]) : ""), found)),
  ].join("\n\n");
}

function figuresText(key: string, { steps, evaluation }: SetStepFigures): string {
  const evaluated = evaluation === null ? [] : [`evaluation ${key}\n${evaluationText(evaluation)}`];
  return [...evaluated, `figures of the set ${key}\n${figuresTable(steps)}`].join("\n\n");
}

const setHead = [
  "set",
  "held",
  "queued",
  "running",
  "completed",
  "failed",
  "cancelled",
  "groups",
  "whole",
  "oldest queued",
  "oldest running",
];

/** Two namespaces may have sets of one key. */
export function nameOf({ namespace, key }: Pick<SetState, "namespace" | "key">): string {
  return namespace === "" ? key : `${namespace}/${key}`;
}

function setRow({ is_drained, rollouts, groups, oldest, ...set }: SetState): (string | number | null)[] {
  const { held, queued, running, completed, failed, cancelled } = rollouts;
  const name = is_drained ? `${nameOf(set)} (drained)` : nameOf(set);
  const ages = [oldest.queued_ms, oldest.running_ms].map(ageOf);
  return [name, held, queued, running, completed, failed, cancelled, groups.open + groups.whole, groups.whole, ...ages];
}

const nodeHead = ["node", "slots", "running", "lease"];

function nodeRow({ name, slots, running, is_draining, lease_ms }: NodeState): (string | number | null)[] {
  return [is_draining ? `${name} (draining)` : name, slots, running, lease_ms < 0 ? "missed" : ageOf(lease_ms)];
}

function failuresOf(sets: SetState[]): string[] {
  const rows = sets.flatMap((set) => Object.entries(set.failures).map(([code, count]) => [nameOf(set), code, count]));
  return rows.length === 0 ? [] : [table(["set", "ended with", "rollouts"], rows)];
}

/** What sets have parked (`straggler_cut`); none of a set that has parked nothing yet. */
function parkedOf({ parked, ...set }: SetState): string[] {
  if (!parked) return [];
  const { leaving, waiting, taken_up, ended } = parked;
  const dropped = Object.entries(ended).map(([reason, count]) => `${count} dropped (${reason})`);
  if (leaving + waiting + taken_up + dropped.length === 0) return [];
  const parts = [`${leaving + waiting} wait for a later group of their task`, `${taken_up} went on in one`, ...dropped];
  return [`set ${nameOf(set)}: of its parked rollouts ${parts.join(", ")}`];
}

/** How far a set with a bound is ahead of its trainer; none where it holds nothing back. */
function aheadOf({ spec, admission, ...set }: SetState): string[] {
  if (admission === null || admission.groups_held === 0) return [];
  const { policy_step: step, groups_begun, groups_allowed, groups_held } = admission;
  const why =
    step === null
      ? "the weights have no name with a step (PUT /control/policy)"
      : `${groups_begun} are begun, and policy step ${step} with max_version_lag ${spec.max_version_lag} allows ${groups_allowed}`;
  return [`set ${nameOf(set)}: ${groups_held} groups are held: ${why}`];
}

function ageOf(milliseconds: number | null): string | null {
  if (milliseconds === null) return null;
  const seconds = Math.round(milliseconds / 1000);
  return seconds < 120 ? `${seconds} s` : `${Math.round(seconds / 60)} min`;
}
