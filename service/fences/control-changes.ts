/** One order each, as a change of what is to be so at all nodes. */
import { AlidadeError } from "../../base/errors.ts";
import { type ControlState, conflicting, type FenceOrder, type NodeQuestion, type PolicyName } from "../ledger/index.ts";

/** A trainer asks about its last one. */
const rememberedFences = 100;
/** One that a service left behind when it died is asked no more once there were so many others. */
const rememberedQuestions = 20;

/** Throws `not_found`. */
export function fenceOf({ fences }: ControlState, name: string): FenceOrder {
  const fence = fences.find((one) => one.fence === name);
  if (fence) return fence;
  throw new AlidadeError("not_found", `there is no fence "${name}": it was resumed, or its drain timed out`, { param: "fence" });
}

/** A fence that is there is asked for again, by a trainer that was restarted. Throws 409 where it was of other engines. */
export function withFence(state: ControlState, wanted: Omit<FenceOrder, "since" | "acknowledged">): ControlState {
  const known = state.fences.find(({ fence }) => fence === wanted.fence);
  if (known && JSON.stringify(known.engines) !== JSON.stringify(wanted.engines))
    throw conflicting("fence", `fence ${wanted.fence} is shut for other engines: resume it first, or give this one a name of its own`);
  const fence = known ? { ...known, order: wanted.order } : { ...wanted, since: Date.now(), acknowledged: false };
  return { ...state, fences: [...state.fences.filter((one) => one !== known), fence] };
}

/** Throws `drain_timeout` where another request has taken its place. */
export function withAcknowledged(state: ControlState, fence: string, order: number): ControlState {
  if (!state.fences.some((one) => one.fence === fence && one.order === order))
    throw new AlidadeError("drain_timeout", `fence ${fence} was resumed, or asked for again, while nodes drained`);
  return { ...state, fences: state.fences.map((one) => (one.fence === fence ? { ...one, acknowledged: true } : one)) };
}

export function withoutFence(state: ControlState, fence: string): ControlState {
  const resumed = [...state.resumed.filter((name) => name !== fence), fence].slice(-rememberedFences);
  return { ...state, fences: state.fences.filter((one) => one.fence !== fence), resumed };
}

/** The last name counts, so earlier ones of the same engines are forgotten. */
export function withName(state: ControlState, name: PolicyName): ControlState {
  const isReplaced = ({ engines }: PolicyName): boolean =>
    engines === null || name.engines === null ? engines === name.engines : engines.every((one) => name.engines?.includes(one));
  return { ...state, policies: [...state.policies.filter((one) => !isReplaced(one)), name] };
}

/** Without its number, which the ledger gives. */
type AskedQuestion = NodeQuestion extends infer One ? (One extends NodeQuestion ? Omit<One, "order"> : never) : never;

export function withQuestion(state: ControlState, question: AskedQuestion, order: number): ControlState {
  return { ...state, questions: [...state.questions, { ...question, order }].slice(-rememberedQuestions) };
}
