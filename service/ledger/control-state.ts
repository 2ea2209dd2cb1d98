/**
 * Weight updates over all nodes. The service writes what is to be so; each node makes it so at its own proxy, and says what
 * came of each order by its number. A node that comes late or back finds the same state, so it needs no history.
 */
import { z } from "zod";
import { Policy } from "../../base/schema/policy.ts";

const order = z.number().int().describe("number of the order; a later one has a higher number");
/** By their names; null: those that serve the policy. */
const engines = z.array(z.string()).nullable();

export const FenceOrder = z.strictObject({
  fence: z.string(),
  order,
  mode: z.enum(["drain", "hold", "abort", "continue"]),
  otherwise: z.enum(["drain", "again"]).optional().describe("of mode `continue`: what a call does that cannot go on"),
  engines,
  since: z.number().describe("Unix milliseconds; with the name it tells one pause from the next of that name"),
  acknowledged: z.boolean().describe("all nodes had drained: from then on the trainer alone opens it"),
});
export type FenceOrder = z.infer<typeof FenceOrder>;

export const PolicyName = z.strictObject({ order, engines, policy: Policy, engine_version: z.string().nullable() });
export type PolicyName = z.infer<typeof PolicyName>;

/** Asked before something is changed, so that it is changed at all nodes or at none. */
export const NodeQuestion = z.discriminatedUnion("asks", [
  z.strictObject({
    asks: z.literal("may these weights be named so?"),
    ...PolicyName.shape,
    fence: z.string().nullable(),
  }),
  z.strictObject({ asks: z.literal("may this fence be opened?"), order, fence: z.string() }),
]);
export type NodeQuestion = z.infer<typeof NodeQuestion>;

/** What is to be so at each node. */
export const ControlState = z.strictObject({
  order: order.default(0),
  fences: z.array(FenceOrder).default([]),
  policies: z.array(PolicyName).default([]),
  questions: z.array(NodeQuestion).default([]),
  resumed: z.array(z.string()).default([]).describe("the last fences that were opened again"),
});
export type ControlState = z.infer<typeof ControlState>;

/** Returns the state after one more order. */
export type ControlChange = (state: ControlState, order: number) => Omit<ControlState, "order">;

export function nextControl(before: ControlState, change: ControlChange): ControlState {
  const order = before.order + 1;
  return ControlState.parse({ ...change(before, order), order });
}

/** By the last name, where there is one the last of the policy's engines; null: no weights have a name. */
export function policyInForce({ policies }: ControlState): Policy | null {
  const [newest] = policies.toSorted(
    (one, other) => Number(one.engines !== null) - Number(other.engines !== null) || other.order - one.order,
  );
  return newest?.policy ?? null;
}

export function stepInForce(state: ControlState): number | null {
  return policyInForce(state)?.step ?? null;
}

/** How long nothing was sampled, when the last fence was opened; else 0. */
export function pausedMs(before: ControlState, { fences }: ControlState, now: number): number {
  if (before.fences.length === 0 || fences.length > 0) return 0;
  return Math.max(0, now - Math.min(...before.fences.map(({ since }) => since)));
}

const calls = z.number().int().nonnegative();
/** Calls by the reason that keeps them from going on. */
const byReason = z.record(z.string(), calls);
/** `continued`: calls that go on from their own tokens; the others end first, or are asked anew. */
const Interrupted = z.strictObject({ continued: calls, drained: byReason, again: byReason });

/** What came of an order at one node. Engines by their names. */
export const NodeAnswer = z.strictObject({
  engines: z.array(z.string()).default([]).describe("that the order was for"),
  running: z.number().int().default(0).describe("calls that ran when the gate was shut"),
  held: z.number().int().default(0).describe("calls that stand still in the engine"),
  interrupted: Interrupted.optional().describe("of mode `continue`"),
  checked: z.array(z.string()).default([]).describe("engines that say the same name of their weights"),
  prefix_cache: z.record(z.string(), z.enum(["reset", "failed", "not_supported"])).default({}),
  error: z.strictObject({ code: z.string(), status: z.number().int(), message: z.string() }).nullable().default(null),
});
export type NodeAnswer = z.infer<typeof NodeAnswer>;

/** `order`: the state that it follows. `answers`: by the number of their order. */
export const NodeReport = z.strictObject({ order, answers: z.record(z.string(), NodeAnswer) });
export type NodeReport = z.infer<typeof NodeReport>;

/** What a node of this name has said since it joined; null: nothing yet. */
export type HeardNode = { node: string; report: NodeReport | null };

/** The numbers of all that nodes are to answer. */
export function ordersOf({ fences, policies, questions }: ControlState): number[] {
  return [...fences, ...policies, ...questions].map(({ order }) => order);
}
