/** A trajectory of what an agent said and which tools it called, for graders of the record. */
import type { Trajectory } from "../../../base/schema/trajectory.ts";
import { goldenTrajectory } from "./golden-session.ts";

export type SpokenTurn = {
  text?: string;
  /** Name and arguments, as they were sampled. */
  tools?: [string, string][];
  /** Fields of the call that differ. */
  call?: Partial<Trajectory["calls"][number]>;
};

export function spokenTrajectory(turns: readonly SpokenTurn[]): Trajectory {
  const golden = goldenTrajectory();
  const [first] = golden.calls;
  if (first === undefined) throw new Error("the golden session has no call");
  const usual = { agent: "main", request_class: "main", outcome: "delivered", other_policy: false } as const;
  return {
    ...golden,
    calls: turns.map(({ call }, ordinal) => ({ ...first, ...usual, call_id: `c${ordinal}`, ordinal, output: `m${ordinal}`, ...call })),
    messages: Object.fromEntries(turns.map((turn, ordinal) => [`m${ordinal}`, messageOf(turn)])),
  };
}

function messageOf({ text, tools = [] }: SpokenTurn): Trajectory["messages"][string] {
  const calls = tools.map(([name, args], nth) => ({ type: "tool_call", id: `t${nth}`, name, arguments: args, kind: "function" }) as const);
  return { role: "assistant", parts: [...(text === undefined ? [] : [{ type: "text", text } as const]), ...calls] };
}
