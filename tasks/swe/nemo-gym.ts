/**
 * Rows as NeMo Gym and the Nemotron sets hold them (Gym at commit 07d6b0d0): a request for a model, and beside it or in its
 * metadata (`instance_dict`) the row of another set. That row is what is loaded.
 */
import { z } from "zod";
import { readJson } from "../../base/schema/read-json.ts";

const Wrapped = z.looseObject({ responses_create_params: z.looseObject({ metadata: z.looseObject({ instance_dict: z.string() }) }) });

/** A row with columns of its own stays as it is, and so do other values: one whose inner row is no JSON is named by its columns. */
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
