/**
 * The variables by which programs find an LLM, for every API shape at once: what `alidade record` gives to any command,
 * and a run file's own command gets in its sandbox.
 */
export function usualVariables(baseUrl: string, apiKey: string): Record<string, string> {
  return {
    OPENAI_BASE_URL: `${baseUrl}/v1`,
    // The older name, which litellm and its users still read.
    OPENAI_API_BASE: `${baseUrl}/v1`,
    OPENAI_API_KEY: apiKey,
    ANTHROPIC_BASE_URL: baseUrl,
    ANTHROPIC_API_KEY: apiKey,
    GOOGLE_GEMINI_BASE_URL: baseUrl,
    GEMINI_API_KEY: apiKey,
  };
}
