/**
 * A sample under a grammar is left out of RL. So where a sandboxed agent is trained, what it asks for that makes engines
 * hold a sample to one (`isUnderGrammar`) is written down and not passed on, or it would choose which of its tokens are
 * trained. The operator allows it by field (`allow_fields`), or forces it (`sampling`).
 */
import type { NeutralRequest, Sampling } from "../../base/schema/message.ts";
import type { CallBegun } from "../../base/schema/session-log.ts";
import type { SessionSpec } from "../../base/schema/session-spec.ts";

type RequestLimits = Pick<SessionSpec, "sandboxed" | "purpose" | "allow_fields">;
type PassedOn = Pick<NeutralRequest, "tools" | "tool_choice"> & Pick<CallBegun, "withheld">;

function isWithheld(field: string, { sandboxed, purpose, allow_fields }: RequestLimits): boolean {
  return sandboxed && purpose === "train" && !allow_fields.includes(field);
}

/** Tools and choice as the engine gets them, and what of them it does not get: absent where that is nothing. */
export function withoutGrammar(spec: RequestLimits, { tools, tool_choice }: Pick<NeutralRequest, "tools" | "tool_choice">): PassedOn {
  const isForced = tool_choice !== null && tool_choice !== "auto" && tool_choice !== "none";
  const choice = isForced && isWithheld("tool_choice", spec) ? tool_choice : null;
  const strict = isWithheld("strict", spec) ? tools.flatMap((tool) => (tool.strict === true ? [tool.name] : [])) : [];
  if (choice === null && strict.length === 0) return { tools, tool_choice };
  return {
    tools: strict.length === 0 ? tools : tools.map(({ strict: flag, ...tool }) => (flag === false ? { ...tool, strict: flag } : tool)),
    tool_choice: choice === null ? tool_choice : null,
    withheld: { ...(choice !== null && { tool_choice: choice }), ...(strict.length > 0 && { strict }) },
  };
}

/** Undefined for each parameter of the request that is not passed on. */
export function grammarWithheld(spec: RequestLimits, { response_format, parallel_tool_calls }: Sampling): Sampling {
  return {
    ...(response_format !== undefined && isWithheld("response_format", spec) && { response_format: undefined }),
    ...(parallel_tool_calls === false && isWithheld("parallel_tool_calls", spec) && { parallel_tool_calls: undefined }),
  };
}
