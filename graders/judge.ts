/**
 * Grades by a model that is asked about each line of a rubric, several times. It is asked through the proxy, in a session of
 * its own that is recorded and never trained. A judge can be talked into a verdict: use it beside graders that cannot, and
 * as a gate rather than alone.
 */
import { z } from "zod";
import { AlidadeError } from "../base/errors.ts";
import { isIsolated, type Verdict } from "../base/schema/rollout.ts";
import type { GradeContext, Grader, GraderSampler } from "./grader.ts";
import { evidenceFor, sights } from "./judge/evidence.ts";
import { partedLines } from "./judge/fence.ts";
import { type Opinion, type Vote, vote } from "./judge/vote.ts";

const Line = z.strictObject({
  name: z.string().regex(/^[A-Za-z0-9_.-]{1,64}$/, "1 to 64 letters, digits, points, hyphens and underscores"),
  says: z.string().min(1).max(2_000).describe("one claim about the work that is true or not"),
  weight: z.number().positive().default(1),
});

const JudgeSpec = z
  .strictObject({
    kind: z.literal("judge"),
    model: z.string().min(1).optional().describe("as the engines serve it; left out: the first that they serve"),
    rubric: z.array(Line).min(1).max(50),
    sees: z.array(z.enum(sights)).min(1).default(["answer", "files"]),
    votes: z.number().int().min(1).max(15).default(1),
  })
  .refine(({ votes }) => votes % 2 === 1, { path: ["votes"], error: "give an odd number, so that there is a majority" })
  .refine(({ rubric }) => new Set(rubric.map(({ name }) => name)).size === rubric.length, {
    path: ["rubric"],
    error: "two lines have one name",
  });
type JudgeSpec = z.infer<typeof JudgeSpec>;

export const judge: Grader<JudgeSpec> = {
  name: "judge",
  title: "A model's word on each line of a rubric",
  version: "3",
  spec: JudgeSpec,
  asksModels: true,
  // Nothing of the work is run, and still the work speaks to what grades it.
  startsFresh: () => false,
  tier: () => "T1",

  async grade(spec, context) {
    const started = performance.now();
    const { sampler, isolation = "none" } = context;
    if (sampler === undefined)
      throw new AlidadeError("grader_error", "a judge is asked through the proxy of a run, and there is none here");
    const { votes, parted_by } = await allVotes(spec, sampler, context);
    const decided = spec.rubric.map(({ name, weight }) => ({ name, weight, value: majority(votes, name) }));
    const open = decided.filter(({ value }) => value === null).map(({ name }) => name);
    const weights = decided.reduce((sum, { weight }) => sum + weight, 0);
    return {
      reward: open.length > 0 ? null : decided.reduce((sum, { weight, value }) => sum + weight * (value ?? 0), 0) / weights,
      components: Object.fromEntries(decided.map(({ name, weight, value }) => [name, { value, weight }])),
      formula: `(${decided.map(({ name, weight }) => `${weight} × ${name}`).join(" + ")}) / ${weights}`,
      ...(open.length === 0 ? { status: "graded", error: null } : abstained(open)),
      tier: isIsolated(isolation) ? "T1" : "T0",
      isolation,
      grader: "judge",
      evidence: { ...evidenceOf(spec, sampler, votes), parted_by },
      duration_ms: performance.now() - started,
    };
  },
};

/** At most this often each: what has not the form twice has no form. */
const tries = 2;

/** Throws `grader_error` where most votes do not count. */
async function allVotes(spec: JudgeSpec, sampler: GraderSampler, context: GradeContext): Promise<{ votes: Vote[]; parted_by: string }> {
  const model = spec.model ?? sampler.model;
  const { task, signal } = context;
  const { lines, parted_by } = await partedLines(await evidenceFor(spec.sees, context), sampler, model, signal);
  const one = async (): Promise<Vote> => {
    for (let nth = 1; ; nth++) {
      const cast = await vote(spec.rubric, task.instruction, lines, { sampler, model, signal });
      if (cast.invalid === null || nth === tries) return cast;
    }
  };
  const votes = await Promise.all(Array.from({ length: spec.votes }, one));
  const invalid = votes.filter((cast) => cast.invalid !== null);
  if (2 * invalid.length < votes.length) return { votes, parted_by };
  throw new AlidadeError(
    "grader_error",
    `${invalid.length} of ${votes.length} votes of the judge ${model} do not count: ${invalid[0]?.invalid}`,
  );
}

/** 1 yes, 0 no, null where neither has more than half of all votes. */
function majority(votes: readonly Vote[], name: string): number | null {
  const count = (opinion: Opinion): number => votes.filter(({ opinions }) => opinions.get(name) === opinion).length;
  if (2 * count("yes") > votes.length) return 1;
  return 2 * count("no") > votes.length ? 0 : null;
}

function abstained(open: readonly string[]): Pick<Verdict, "status" | "error"> {
  const message = `the judge has no majority for ${open.join(", ")}`;
  return { status: "judge_abstained", error: { code: "judge_abstained", message, status: null } };
}

function evidenceOf({ model }: JudgeSpec, sampler: GraderSampler, votes: readonly Vote[]): Record<string, unknown> {
  const sum = (key: "prompt_tokens" | "sampled_tokens"): number => votes.reduce((all, cast) => all + cast[key], 0);
  return {
    model: model ?? sampler.model,
    session_id: sampler.session_id,
    prompt_sha256: votes[0]?.prompt_sha256,
    prompt_tokens: sum("prompt_tokens"),
    sampled_tokens: sum("sampled_tokens"),
    votes: votes.map(({ opinions, invalid }) => ({ invalid, opinions: Object.fromEntries(opinions) })),
  };
}
