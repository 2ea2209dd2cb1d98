/**
 * Unwraps rows of NeMo Gym and the Nemotron sets (Gym at commit 07d6b0d0). Such a row holds a request for a model, and the row of
 * another set beside it or in its metadata (`instance_dict`). The inner row is loaded.
 */
import { z } from "zod";
import { readJson } from "../../base/schema/read-json.ts";

const Wrapped = z.looseObject({ responses_create_params: z.looseObject({ metadata: z.looseObject({ instance_dict: z.string() }) }) });

/** Returns the inner row, else the value itself. If the inner row is no JSON, a later error names the outer row's columns. */
export function withoutRequest(value: unknown): unknown {
  const wrapped = Wrapped.safeParse(value);
  if (!wrapped.success || Object.hasOwn(wrapped.data, "test_patch")) return value;
  try {
    const row = readJson(wrapped.data.responses_create_params.metadata.instance_dict);
    return row !== null && typeof row === "object" && !Array.isArray(row) ? row : value;
  } catch {
    return value;
  }
}
