import { dialects } from "../proxy/dialects/index.ts";

/**
 * The variables by which programs find an LLM, of every API shape at once: what `alidade record` gives to any command,
 * and a run file's own command gets in its sandbox. `baseUrl` is without a trailing slash and without `/v1`.
 */
export function usualVariables(baseUrl: string, apiKey: string): Record<string, string> {
  return {
    // The older name, which litellm and its users still read.
    OPENAI_API_BASE: `${baseUrl}/v1`,
    ...Object.fromEntries(dialects.flatMap((dialect) => Object.entries(dialect.env(baseUrl, apiKey)))),
  };
}
