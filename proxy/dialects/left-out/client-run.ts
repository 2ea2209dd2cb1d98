/**
 * Tools that the client runs and whose schema only their vendor's model knows. The model here would not know them, and a
 * history that calls one would name a tool that is not declared: a request that offers one is refused.
 */
import { invalid } from "../edge.ts";

const clientRun: readonly { types: RegExp; instead: string }[] = [
  // Messages: `bash_20250124`, `text_editor_20250728`, `computer_20251124`, `memory_20250818`.
  { types: /^(?:bash|text_editor|computer|memory)_\d{8}$/, instead: "a custom tool with `name`, `description` and `input_schema`" },
  // Responses. Its shells and patches have a form here: `openai-responses/builtin-tools.ts`.
  { types: /^(?:computer|computer_use|computer_use_preview)$/, instead: "a tool of type `function` with `parameters`" },
  // generateContent.
  { types: /^computerUse$/, instead: "a function in `functionDeclarations`" },
];

/** Throws `request_invalid` naming the tool and its place. */
export function refuseClientRun(type: string, at: string): void {
  const known = clientRun.find(({ types }) => types.test(type));
  if (known)
    throw invalid(at, `the tool "${type}" has a schema at its vendor only, and your client runs it: declare it as ${known.instead}`);
}
