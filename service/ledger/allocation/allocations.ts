import { messageOf } from "../../../base/errors.ts";
import { refusals } from "../refusals.ts";
import type { AllocationPolicy, GroupSoFar } from "./allocation-policy.ts";

/** As a set's `allocation` says it. */
type Allocation = { policy: string; first: number; most: number };

/** Decides by the policies that a process knows. A policy that fails decides nothing: its group gets `samples`. */
export class Allocations {
  readonly #policies: readonly AllocationPolicy[];
  readonly #note: (text: string) => void;
  /** Names of policies whose failure was noted. A set may have a million groups. */
  readonly #noted = new Set<string>();

  constructor(policies: readonly AllocationPolicy[], note: (text: string) => void = () => undefined) {
    this.#policies = policies;
    this.#note = note;
  }

  /** Throws `request_invalid` with the names that there are. */
  assertKnown(allocation: { policy: string } | null): void {
    const names = this.#policies.map(({ name }) => name);
    if (allocation !== null && !names.includes(allocation.policy)) throw refusals.unknownPolicy(allocation.policy, names);
  }

  /**
   * Returns how many samples the group gets beyond its first ones, and what is left then for groups that come later. `spare`:
   * what earlier groups have left. All groups together get at most `samples` each, whatever the policy says.
   */
  decide({ policy, first, most }: Allocation, group: Omit<GroupSoFar, "first" | "most">, spare: number): { more: number; spare: number } {
    const wanted = this.#wanted(policy, { ...group, first, most });
    const there = spare + group.samples - first;
    const more = Math.max(0, Math.min(wanted, most - first, there));
    return { more, spare: there - more };
  }

  #wanted(name: string, group: GroupSoFar): number {
    const policy = this.#policies.find((one) => one.name === name);
    const more =
      policy === undefined ? new Error("this process does not know it: name its file in allocation_policies") : ask(policy, group);
    if (typeof more === "number" && Number.isInteger(more)) return more;
    const why =
      more instanceof Error ? messageOf(more) : `it returned ${typeof more === "number" ? more : `a ${typeof more}`}, and no whole number`;
    if (!this.#noted.has(name)) this.#note(`the allocation policy ${name} decides nothing, so groups get their samples: ${why}`);
    this.#noted.add(name);
    return group.samples - group.first;
  }
}

function ask(policy: AllocationPolicy, group: GroupSoFar): unknown {
  try {
    const more: unknown = policy.more(group);
    // It cannot be waited for; nor may its failure end the process.
    if (more instanceof Promise) more.catch(() => undefined);
    return more;
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}
