/** Reads Harbor's reward files: `reward.json`, a flat object of numbers, else `reward.txt`, one number. */
import { AlidadeError, messageOf } from "../../base/errors.ts";
import type { TreeFile } from "../../base/files/file-tree.ts";
import { readJson } from "../../base/schema/read-json.ts";

export type Rewards = {
  file: "reward.json" | "reward.txt";
  /** Name -> number. true counts as 1, false as 0. */
  values: Map<string, number>;
  /** Whether both files exist and reward.txt holds another reward. Harbor and we take reward.json; older versions took reward.txt. */
  disagree(reward: number): boolean;
};

/** Ample: two hundred numbers take a few kilobytes. */
const maxBytes = 1024 * 1024;
const maxValues = 200;

/**
 * Returns the numbers in `files`, which come from /logs/verifier. Throws `grader_error` with one sentence if they hold none,
 * where Harbor has RewardFileNotFoundError, RewardFileEmptyError and VerifierOutputParseError.
 */
export function readRewards(files: TreeFile[]): Rewards {
  const [json, text] = ["reward.json", "reward.txt"].map((name) => files.find(({ path }) => path === name));
  const [file, found] = json ? (["reward.json", json] as const) : (["reward.txt", text] as const);
  if (!found) throw failure("the tests left neither /logs/verifier/reward.json nor /logs/verifier/reward.txt");
  const values = file === "reward.json" ? numbersOf(textOf(file, found)) : new Map([["reward", numberOf(textOf(file, found))]]);
  return { file, values, disagree: (reward) => json !== undefined && text !== undefined && disagrees(text, reward) };
}

function textOf(file: string, { content }: TreeFile): string {
  if (content.length === 0) throw failure(`/logs/verifier/${file} is empty`);
  if (content.length > maxBytes) throw failure(`/logs/verifier/${file} has more than ${maxBytes} bytes`);
  return content.toString("utf8");
}

/** Reads it as Python's float() does, but refuses `nan` and `inf`. */
function numberOf(text: string): number {
  const trimmed = text.trim();
  const value = /^[+-]?(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:e[+-]?\d+)?$/i.test(trimmed) ? Number(trimmed.replaceAll("_", "")) : Number.NaN;
  if (!Number.isFinite(value)) throw failure(`/logs/verifier/reward.txt is "${trimmed.slice(0, 100)}" and not one finite number`);
  return value;
}

function numbersOf(text: string): Map<string, number> {
  const parsed = parse(text);
  if (parsed === null || typeof parsed !== "object" || Array.isArray(parsed))
    throw failure(`/logs/verifier/reward.json is ${text.trim().slice(0, 100)} and not an object of numbers`);
  const entries = Object.entries(parsed);
  if (entries.length > maxValues) throw failure(`/logs/verifier/reward.json has more than ${maxValues} values`);
  return new Map(entries.map(([name, value]) => [name, toNumber(name, value)]));
}

function parse(text: string): unknown {
  try {
    return readJson(text);
  } catch (error) {
    throw failure(`/logs/verifier/reward.json is not JSON (${messageOf(error)})`);
  }
}

function toNumber(name: string, value: unknown): number {
  if (typeof value === "boolean") return Number(value);
  if (typeof value === "number" && Number.isFinite(value)) return value;
  throw failure(`${JSON.stringify(name).slice(0, 100)} of /logs/verifier/reward.json is no finite number`);
}

function disagrees(text: TreeFile, reward: number): boolean {
  try {
    return numberOf(textOf("reward.txt", text)) !== reward;
  } catch {
    return true;
  }
}

function failure(message: string): AlidadeError {
  return new AlidadeError("grader_error", message);
}
