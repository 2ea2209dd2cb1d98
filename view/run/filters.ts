/** Selects rollouts and sessions by task, reward, end and labels. The browser also selects by step, length and reason. */
import { AlidadeError } from "../../base/errors.ts";
import { toMatch } from "../../base/schema/complaints/to-match.ts";
import { type Entry, nullReason } from "./entries.ts";

export type EntryTest = (entry: Entry) => boolean;

/** Each reads a filter's text, and throws `request_invalid` with the field if the text is not valid. */
export const filters = {
  task: (glob) => {
    const fits = toMatch(glob);
    return ({ task_id }) => task_id !== null && fits(task_id);
  },
  group: (glob) => {
    const fits = toMatch(glob);
    return ({ group_id }) => group_id !== null && fits(group_id);
  },
  reward: (text) => {
    if (text === "none") return ({ reward }) => reward === null;
    if (text.startsWith("none:")) {
      const fits = toMatch(text.slice("none:".length));
      return (entry) => entry.reward === null && fits(nullReason(entry));
    }
    return conditionOn("reward", text, ({ reward }) => reward);
  },
  end: (glob) => {
    const fits = toMatch(glob);
    return ({ end, mask_reason, state }) => [end, mask_reason, state].some((word) => word !== null && fits(word));
  },
  label: (text) => {
    const at = text.indexOf("=");
    if (at < 1) throw wrong("label", `give a name, = and a value, such as split=held-out, and not "${text}"`);
    const fits = toMatch(text.slice(at + 1));
    const name = text.slice(0, at);
    return ({ labels }) => Object.hasOwn(labels, name) && fits(labels[name] ?? "");
  },
  step: (text) => {
    if (text === "none") return ({ policies }) => policies.every(({ step }) => step === null);
    return conditionOn("step", text, newestStep);
  },
  turns: (text) => conditionOn("turns", text, ({ turns }) => turns),
  tokens: (text) => conditionOn("tokens", text, ({ sampled_tokens }) => sampled_tokens),
  reason: (glob) => {
    const fits = toMatch(glob);
    return ({ excluded, causes, verdict }) =>
      [...Object.keys(excluded), ...Object.keys(causes), ...(verdict === null ? [] : [verdict.status, ...verdict.failed])].some(fits);
  },
} as const satisfies Record<string, (text: string) => EntryTest>;

export type FilterName = keyof typeof filters;
export const filterNames = Object.keys(filters) as FilterName[];

/** The newest step of the policies that sampled it; null if no policy names a step. */
export function newestStep({ policies }: Pick<Entry, "policies">): number | null {
  const steps = policies.flatMap(({ step }) => step ?? []);
  return steps.length === 0 ? null : Math.max(...steps);
}

const condition = /^(<=|>=|<|>|=)?\s*(-?\d{1,15}(?:\.\d{1,15})?)$/;

const range = /^(-?\d{1,15}(?:\.\d{1,15})?)\.\.(-?\d{1,15}(?:\.\d{1,15})?)$/;

function conditionOn(name: string, text: string, of: (entry: Entry) => number | null): EntryTest {
  const holds = inRange(text) ?? asComparison(text);
  if (holds === null) {
    const none = name === "reward" || name === "step" ? ", or none" : "";
    throw wrong(name, `give a number, >= and a number, a range such as 4..7${none}, and not "${text}"`);
  }
  return (entry) => {
    const value = of(entry);
    return value !== null && holds(value);
  };
}

/** Both ends count. */
function inRange(text: string): ((value: number) => boolean) | null {
  const [, low, high] = range.exec(text) ?? [];
  return low === undefined ? null : (value) => value >= Number(low) && value <= Number(high);
}

function asComparison(text: string): ((value: number) => boolean) | null {
  const [, sign = "=", digits] = condition.exec(text) ?? [];
  return digits === undefined ? null : comparison(sign, Number(digits));
}

function comparison(sign: string, than: number): (value: number) => boolean {
  switch (sign) {
    case "<":
      return (value) => value < than;
    case "<=":
      return (value) => value <= than;
    case ">":
      return (value) => value > than;
    case ">=":
      return (value) => value >= than;
    default:
      return (value) => value === than;
  }
}

function wrong(param: string, how: string): AlidadeError {
  return new AlidadeError("request_invalid", `${param}: ${how}`, { param });
}
