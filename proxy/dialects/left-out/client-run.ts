/**
 * Tools that the client runs, of a type that has no form here: their schema is at their vendor. The model would not know
 * them, and a history that calls one would name a tool that is not declared. A request that offers one is refused.
 */
import { invalid } from "../edge.ts";

const clientRun: readonly { types: RegExp; instead: string }[] = [
  // Messages, of a date that `anthropic-messages/client-tools.ts` does not know.
  { types: /^(?:bash|text_editor|computer|memory)_\d{8}$/, instead: "a custom tool with `name`, `description` and `input_schema`" },
  // Responses' own, sent in another dialect. There they have a form: `openai-responses/builtin-tools.ts`.
  { types: /^(?:computer|computer_use|computer_use_preview)$/, instead: "a tool of type `function` with `parameters`" },
];

/** Throws `request_invalid` naming the tool and its place. */
export function refuseClientRun(type: string, at: string): void {
  const known = clientRun.find(({ types }) => types.test(type));
  if (known)
    throw invalid(at, `the tool "${type}" has a schema at its vendor only, and your client runs it: declare it as ${known.instead}`);
}
