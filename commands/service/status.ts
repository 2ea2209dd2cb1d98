/** `alidade status`: how a service is: its sets, nodes and failures. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Command } from "commander";
import { AlidadeError, messageOf } from "../../errors.ts";
import type { NodeState, SetState } from "../../ledger/index.ts";
import { readJson } from "../../schema/read-json.ts";
import { print, table } from "../command-line.ts";
import { terminal } from "../terminal.ts";
import { defaultTokenVariable } from "./service-tokens.ts";

type StatusFlags = { url?: string; tokenEnv: string; out: string; json?: boolean };
type Health = { status: string; reason: string | null; nodes: NodeState[] };
type ServiceStatus = { url: string; health: Health; sets: SetState[] };

/** A service that is asked for its counts answers within this time, or is not well. */
const answerMs = 30_000;

export function status(program: Command): void {
  program
    .command("status")
    .description("Says how a service is: counts and ages of its sets, its nodes, and failures by code.")
    .option("--url <url>", "the service's address (default: that of <out>/service/service.json)")
    .option("--token-env <name>", "variable that holds a token with the role read", defaultTokenVariable)
    .option("-o, --out <folder>", "folder of the service", "runs")
    .option("--json", "print one JSON object with health and sets")
    .addHelpText("after", "\nExamples:\n  alidade status\n  alidade status --url https://rollouts.example --token-env READER --json")
    .action(async (flags: StatusFlags) => {
      const found = await statusOf(flags);
      print(flags.json ? JSON.stringify(found) : textOf(found));
    });
}

async function statusOf(flags: StatusFlags): Promise<ServiceStatus> {
  const kept = flags.url === undefined ? await readKept(join(flags.out, "service", "service.json")) : null;
  const url = (flags.url ?? kept?.url ?? "").replace(/\/+$/, "");
  const token = terminal().env[flags.tokenEnv] ?? kept?.token ?? null;
  if (token === null)
    throw new AlidadeError("config_invalid", `--token-env names ${flags.tokenEnv}, which is not set: put a token of the service into it`, {
      param: "token_env",
    });
  const health = (await ask(`${url}/health`, token)) as Health;
  const { sets } = (await ask(`${url}/sets`, token)) as { sets: SetState[] };
  return { url, health, sets };
}

async function readKept(file: string): Promise<{ url: string; token: string | null }> {
  const text = await readFile(file, "utf8").catch(() => {
    throw new AlidadeError("config_invalid", `there is no ${file}: name the folder of a service by --out, or its address by --url`, {
      param: "out",
    });
  });
  return readJson(text) as { url: string; token: string | null };
}

async function ask(url: string, token: string): Promise<unknown> {
  const response = await fetch(url, { headers: { authorization: `Bearer ${token}` }, signal: AbortSignal.timeout(answerMs) }).catch(
    (error: unknown) => {
      const { cause } = error as { cause?: unknown };
      throw new AlidadeError("not_found", `no service answers at ${url}: ${messageOf(cause ?? error)}`, { param: "url" });
    },
  );
  const text = await response.text();
  if (response.ok) return readJson(text);
  throw new AlidadeError(
    response.status === 401 ? "unauthorized" : "request_invalid",
    `${url} answers ${response.status}: ${text.slice(0, 300)}`,
  );
}

function textOf({ url, health, sets }: ServiceStatus): string {
  const { status, reason, nodes } = health;
  return [
    `service ${url}: ${status}${reason === null ? "" : `, ${reason}`}`,
    sets.length === 0 ? "no sets" : table(setHead, sets.map(setRow)),
    nodes.length === 0 ? "no nodes" : table(nodeHead, nodes.map(nodeRow)),
    ...failuresOf(sets),
  ].join("\n\n");
}

const setHead = ["set", "queued", "running", "completed", "failed", "cancelled", "groups", "whole", "oldest queued", "oldest running"];

function setRow({ key, is_drained, rollouts, groups, oldest }: SetState): (string | number | null)[] {
  const { queued, running, completed, failed, cancelled } = rollouts;
  const name = is_drained ? `${key} (drained)` : key;
  const ages = [oldest.queued_ms, oldest.running_ms].map(ageOf);
  return [name, queued, running, completed, failed, cancelled, groups.open + groups.whole, groups.whole, ...ages];
}

const nodeHead = ["node", "slots", "running", "lease"];

function nodeRow({ name, slots, running, is_draining, lease_ms }: NodeState): (string | number | null)[] {
  return [is_draining ? `${name} (draining)` : name, slots, running, lease_ms < 0 ? "missed" : ageOf(lease_ms)];
}

function failuresOf(sets: SetState[]): string[] {
  const rows = sets.flatMap(({ key, failures }) => Object.entries(failures).map(([code, count]) => [key, code, count]));
  return rows.length === 0 ? [] : [table(["set", "ended with", "rollouts"], rows)];
}

function ageOf(milliseconds: number | null): string | null {
  if (milliseconds === null) return null;
  const seconds = Math.round(milliseconds / 1000);
  return seconds < 120 ? `${seconds} s` : `${Math.round(seconds / 60)} min`;
}
