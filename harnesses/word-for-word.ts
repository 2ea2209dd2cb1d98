import { asText } from "./instruction.ts";
import { tomlString } from "./settings.ts";

const command = "alidade-task";

/**
 * How an instruction reaches Gemini CLI, and its fork Qwen Code, word for word. In a prompt each `@` is a file to them, in
 * `me@example.com` and `@property` too: they look for one, attach what they find, and put the text together anew. The
 * prompt of a custom command stays as it is, unless it holds what they fill in there.
 */
export function wordForWord(instruction: string, folder: string): { prompt: string; files: Record<string, string> } {
  if (instruction.includes("@") && !/[@!]\{|\{\{args\}\}/.test(instruction))
    return { prompt: `/${command}`, files: { [`${folder}/commands/${command}.toml`]: `prompt = ${tomlString(instruction)}\n` } };
  return { prompt: asText(instruction), files: {} };
}
