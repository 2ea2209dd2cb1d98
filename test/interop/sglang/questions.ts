/** What a real SGLang is asked for its recording, and what the recording is asked in the tests: one list for both. */

import { AlidadeError } from "../../../base/errors.ts";
import type { Message, Tool } from "../../../base/schema/message.ts";
import type { Engine, SampleEvent, SampleRequest } from "../../../engines/engine.ts";

const user = (text: string): Message => ({ role: "user", parts: [{ type: "text", text }] });
const bash: Tool = {
  name: "bash",
  description: "Runs a command.",
  parameters: { type: "object", properties: { command: { type: "string" } }, required: ["command"] },
  kind: "function",
};

/** A turn in the tokens of the model's own tool-call syntax, forced so that random weights say it. */
const toolTurn = '<tool_call>\\n\\{"name": "bash", "arguments": \\{"command": "ls( -l)?"\\}\\}\\n</tool_call>';

export const questions: Record<string, Partial<SampleRequest>> = {
  text: { messages: [user("Tell me about the sea.")], sampling: { temperature: 1, max_tokens: 24 } },
  "a tool call": { messages: [user("List the files.")], tools: [bash], sampling: { temperature: 1, max_tokens: 200, regex: toolTurn } },
  "a tool's result": {
    messages: [
      user("List the files."),
      { role: "assistant", parts: [{ type: "tool_call", id: "call_1", name: "bash", arguments: '{"command": "ls"}', kind: "function" }] },
      { role: "tool", parts: [{ type: "tool_result", call_id: "call_1", content: [{ type: "text", text: "add.js é" }], is_error: false }] },
    ],
    tools: [bash],
    sampling: { temperature: 1, max_tokens: 12 },
  },
  "too long": { messages: [user("sea ".repeat(9_000))], sampling: { temperature: 1, max_tokens: 8 } },
};

export type Answer = { events: SampleEvent[] } | { error: { code: string; status: number; message: string } };

export async function ask(engine: Engine, model: string, name: string, signal: AbortSignal): Promise<Answer> {
  const request: SampleRequest = {
    model,
    messages: [],
    tools: [],
    tool_choice: null,
    sampling: {},
    call_id: "callrecorded",
    ...questions[name],
  };
  try {
    return { events: await Array.fromAsync(engine.sample(request, signal)) };
  } catch (error) {
    if (!(error instanceof AlidadeError)) throw error;
    return { error: { code: error.code, status: error.status, message: error.message } };
  }
}

/** The texts that are tokenized and back. */
export const texts = ["The sea, and é 😀.", ""];
