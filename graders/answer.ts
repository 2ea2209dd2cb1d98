/** Grades what an agent said last, for tasks that are answered in words. */
import { z } from "zod";
import { answerOf } from "./answer-of.ts";
import { Pattern } from "./bounded/matches.ts";
import type { GradeContext, Grader } from "./grader.ts";
import { hold, Longest, usualLongest, whyTooLong } from "./rules/condition.ts";
import { boxedIn, hashedIn } from "./rules/marked-answer.ts";
import { ruleVerdict } from "./rules/rule-verdict.ts";
import { isSameMath, longestMath } from "./rules/same-math.ts";

const ways = ["exact", "number", "set", "regex", "math"] as const;

const AnswerSpec = z
  .strictObject({
    kind: z.literal("answer"),
    exact: z
      .union([z.string(), z.array(z.string()).min(1)])
      .optional()
      .describe("the text, or one of several; spaces around it do not count"),
    number: z.number().optional().describe("the last number that is said"),
    tolerance: z.number().nonnegative().default(0).describe("how far `number` may be off"),
    set: z.array(z.string()).min(1).optional().describe("these texts, between commas, semicolons or line ends, in any order"),
    regex: Pattern.optional().describe("a regular expression that finds something in it"),
    math: z
      .string()
      .trim()
      .min(1)
      .max(longestMath)
      .optional()
      .describe("a mathematical answer, as in `1,234` or `\\frac{1}{2}`; what MATH's convention reads as the same is the same"),
    longest: Longest.describe(`characters of an answer that \`regex\` looks into: a longer one is wrong; left out: ${usualLongest}`),
    take: z
      .enum(["all", "last_line", "boxed", "hashes"])
      .default("all")
      .describe(
        "the whole last turn, its last line that is not empty, what its last `\\boxed{…}` holds, or what follows `####` in its last such line",
      ),
    ignore_case: z.boolean().default(false).describe("for exact and set"),
  })
  .refine((spec) => ways.filter((way) => spec[way] !== undefined).length === 1, { error: `give one of ${ways.join(", ")}` });
type AnswerSpec = z.infer<typeof AnswerSpec>;

/** What a verdict shows of an answer. */
const shownCharacters = 500;

export const answer: Grader<AnswerSpec> = {
  name: "answer",
  title: "The agent's last turn: a text, a number, a set of words, a regular expression or a mathematical answer",
  version: "2",
  spec: AnswerSpec,
  expected: ({ exact = [] }) => [exact].flat().map((text) => ({ text, given: "" })),
  startsFresh: () => false,
  tier: () => "T3",

  async grade(spec, context) {
    const started = performance.now();
    const said = context.trajectory ? answerOf(context.trajectory) : null;
    const taken = said === null ? null : takers[spec.take](said);
    const missing = said === null ? "there is no answer" : `there is no answer where take: ${spec.take} looks for it`;
    const why = taken === null ? missing : await whyWrong(spec, taken, context);
    const way = ways.find((one) => spec[one] !== undefined) as string;
    return ruleVerdict("answer", [{ name: way, holds: why === null, why: why ?? "" }], context, started, {
      answer: taken === null ? null : taken.slice(0, shownCharacters),
    });
  },
};

const takers: Record<AnswerSpec["take"], (said: string) => string | null> = {
  all: (said) => said,
  last_line: lastLineOf,
  boxed: boxedIn,
  hashes: hashedIn,
};

function lastLineOf(text: string): string {
  return text.trimEnd().split("\n").at(-1) ?? "";
}

/** null where the answer is right. */
async function whyWrong(spec: AnswerSpec, taken: string, { signal }: GradeContext): Promise<string | null> {
  const alike = (text: string): string => (spec.ignore_case ? text.trim().toLowerCase() : text.trim());
  if (spec.exact !== undefined) return [spec.exact].flat().map(alike).includes(alike(taken)) ? null : "it is another text";
  if (spec.number !== undefined) {
    const number = lastNumber(taken);
    if (number === null) return "it names no number";
    return Math.abs(number - spec.number) <= spec.tolerance ? null : `its last number is ${number}`;
  }
  if (spec.math !== undefined) return isSameMath(taken, spec.math) ? null : "it is another answer";
  if (spec.set !== undefined) {
    const [named, wanted] = [
      new Set(
        taken
          .split(/[,;\n]/)
          .map(alike)
          .filter((one) => one !== ""),
      ),
      new Set(spec.set.map(alike)),
    ];
    return named.symmetricDifference(wanted).size === 0 ? null : `it names ${named.size} things, and not the ${wanted.size} that are right`;
  }
  const pattern = { matches: spec.regex, longest: spec.longest };
  const [found] = await hold(pattern, [taken], signal);
  if (found === true) return null;
  return whyTooLong(pattern, taken) ?? (found === false ? "the pattern finds nothing" : "the pattern was not decided in time");
}

/** `1,234.5`, `-3`, `2e-3`; null where there is none. */
function lastNumber(text: string): number | null {
  const last = text.match(/[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][-+]?\d+)?/g)?.at(-1);
  return last === undefined ? null : Number(last.replaceAll(",", ""));
}
