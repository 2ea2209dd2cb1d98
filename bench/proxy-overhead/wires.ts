/** The same conversation as each dialect writes it: where its requests go, how its messages stand, where its ids are. */

type Text = (length: number) => string;
export type WireName = "openai-chat" | "anthropic-messages" | "openai-responses";

export type Wire = {
  path: string;
  /** Everything in front of the conversation. */
  begin(request: { model: string; stream: boolean; system: string }): string;
  user(text: string): string;
  /** A turn of the model: `[0] id [1]`, and then `id [2]` behind its result's beginning. */
  turn(content: string, args: string, result: string): [string, string, string];
  /** The field behind which the first tool-call id of an answer stands. */
  idBehind: string;
  idField: string;
};

const description = "Runs a command in the sandbox and returns what it printed.";
const parameters = {
  type: "object",
  properties: { command: { type: "string", description: "the command line" }, timeout: { type: "integer" } },
  required: ["command"],
};
const json = JSON.stringify;
/** The value's fields, to go on with. */
const open = (fields: Record<string, unknown>): string => json(fields).slice(0, -1);

export const wires: Record<WireName, Wire> = {
  "openai-chat": {
    path: "/v1/chat/completions",
    begin: ({ model, stream, system }) =>
      `${open({ model, stream, temperature: 0.7, max_tokens: 4096, tools: [{ type: "function", function: { name: "bash", description, parameters } }] })},"messages":[${json({ role: "system", content: system })}`,
    user: (content) => json({ role: "user", content }),
    turn: (content, args, result) => [
      `${open({ role: "assistant", content })},"tool_calls":[{"id":"`,
      `","type":"function","function":${json({ name: "bash", arguments: args })}}]},{"role":"tool","tool_call_id":"`,
      `","content":${json(result)}}`,
    ],
    idBehind: '"tool_calls":[',
    idField: '"id":"',
  },
  "anthropic-messages": {
    path: "/v1/messages",
    begin: ({ model, stream, system }) =>
      `${open({ model, stream, max_tokens: 4096, system, tools: [{ name: "bash", description, input_schema: parameters }] })},"messages":[`,
    user: (content) => json({ role: "user", content }),
    turn: (text, args, result) => [
      `{"role":"assistant","content":[${json({ type: "text", text })},{"type":"tool_use","id":"`,
      `","name":"bash","input":${args}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"`,
      `","content":${json(result)}}]}`,
    ],
    idBehind: '"tool_use"',
    idField: '"id":"',
  },
  "openai-responses": {
    path: "/v1/responses",
    begin: ({ model, stream, system }) =>
      `${open({ model, stream, store: false, instructions: system, tools: [{ type: "function", name: "bash", description, parameters }] })},"input":[`,
    user: (content) => json({ type: "message", role: "user", content }),
    turn: (text, args, result) => [
      `${json({ type: "message", role: "assistant", content: [{ type: "output_text", text }] })},{"type":"function_call","call_id":"`,
      `","name":"bash","arguments":${json(args)}},{"type":"function_call_output","call_id":"`,
      `","output":${json(result)}}`,
    ],
    idBehind: '"output":[',
    idField: '"call_id":"',
  },
};

/** What stands between the pieces of a conversation that was so long before it began. */
export type Opening = { system: string; user: string; turns: { id: string; content: string; args: string; result: string }[] };

/** A system prompt, the task, and where there is room a history from before: file contents and short turns, as agents have. */
export function openingOf(bytes: number, marker: string, text: Text): Opening {
  const opening: Opening = { system: text(Math.min(12_000, bytes / 3)), user: "", turns: [] };
  let left = bytes - opening.system.length - 200;
  for (let call = 0; left > 6_000; call++) {
    opening.turns.push({ id: `call_before_${call}`, content: text(600), args: '{"command":"cat"}', result: text(3_000) });
    left -= 3_800;
  }
  opening.user = `${marker} ${text(left)}`;
  return opening;
}

/** The opening on a wire, without what comes after it. */
export function writeOpening(wire: Wire, model: string, stream: boolean, { system, user, turns }: Opening): string {
  const begin = wire.begin({ model, stream, system });
  const pieces = [
    wire.user(user),
    ...turns.map(({ id, content, args, result }) => {
      const [said, called, answered] = wire.turn(content, args, result);
      return said + id + called + id + answered;
    }),
  ];
  return `${begin}${begin.endsWith("[") ? "" : ","}${pieces.join(",")}`;
}
