/** Parts that only Google's own tools write: code that ran there, and calls of its tools. Each is a call, or the result of one. */
import type { Message, ToolCallPart } from "../../../base/schema/message.ts";
import { isObject, type JsonObject } from "../edge.ts";
import { hostedCall, hostedResult, picked, shownValue } from "../left-out/hosted-history.ts";
import { camelKeys } from "./wire.ts";

export class HostedParts {
  /** The call that waits for its result; a result without one gets a call of no input. */
  #open = "";
  #count = 0;

  /** Null for a part of another kind. */
  read(part: JsonObject): ToolCallPart | Message | null {
    if (isObject(part.executableCode)) return this.#call("code_execution", picked(camelKeys(part.executableCode), ["language", "code"]));
    if (isObject(part.codeExecutionResult)) {
      const { outcome, output } = camelKeys(part.codeExecutionResult);
      return hostedResult(this.#open, shownValue(output), outcome !== undefined && outcome !== "OUTCOME_OK");
    }
    if (isObject(part.toolCall)) {
      const { id, toolType, args } = camelKeys(part.toolCall);
      return this.#call(typeof toolType === "string" ? toolType : "tool", args, id);
    }
    if (!isObject(part.toolResponse)) return null;
    const { id, response } = camelKeys(part.toolResponse);
    return hostedResult(typeof id === "string" ? id : this.#open, shownValue(response));
  }

  #call(name: string, input: unknown, id?: unknown): ToolCallPart {
    this.#open = typeof id === "string" && id !== "" ? id : `hosted${++this.#count}`;
    return hostedCall(this.#open, name, input);
  }
}
