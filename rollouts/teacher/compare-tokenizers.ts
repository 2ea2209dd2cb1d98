import type { Teacher, Trajectory } from "../../base/schema/trajectory.ts";

/**
 * Compares the teacher's tokenizer (a fingerprint; null: unknown) with the tokenizers of the engines that sampled. `other`: the same ids
 * are other words to the teacher. `sampled_by`: the model with another tokenizer; null: there is none, or it has no name.
 */
export function compareTokenizers(
  teacher: string | null,
  { calls }: Pick<Trajectory, "calls">,
): { tokenizer: Teacher["tokenizer"]; sampled_by: string | null } {
  const policy = calls.filter((call) => !call.other_policy && (call.sampled_length ?? 0) > 0);
  const known = policy.map((call) => call.fingerprints?.tokenizer ?? null);
  const other = policy.find(
    ({ fingerprints }) => fingerprints?.tokenizer != null && teacher !== null && fingerprints.tokenizer !== teacher,
  );
  if (other !== undefined) return { tokenizer: "other", sampled_by: other.engine_model ?? null };
  return { tokenizer: teacher === null || known.includes(null) ? "unknown" : "same", sampled_by: null };
}
