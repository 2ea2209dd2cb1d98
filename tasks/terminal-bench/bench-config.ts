/** `task.yaml` of Terminal-Bench 1, with its defaults. Terminal-Bench ignores other fields; so do we, and name them. */
import { z } from "zod";
import { terminalParserNames } from "../../graders/harbor/index.ts";

const seconds = z.number().positive().max(2_000_000);
const word = z.string().nullish();
const estimate = z.number().nullish();

export const BenchConfig = z.object({
  instruction: z.string().min(1).optional(),
  /** The first tasks have these instead of `instruction`, which is the entry with the key `base`. */
  descriptions: z.array(z.object({ key: z.string(), description: z.string().min(1) })).optional(),
  author_name: word,
  author_email: word,
  difficulty: word,
  category: word,
  tags: z.array(z.string()).nullish(),
  parser_name: z
    .enum(terminalParserNames, { error: ({ input }) => `is ${JSON.stringify(input)}: give one of ${terminalParserNames.join(", ")}` })
    .default("pytest"),
  max_agent_timeout_sec: seconds.default(360),
  max_test_timeout_sec: seconds.default(60),
  run_tests_in_same_shell: z.boolean().default(false),
  /** Ignored, because we never record a terminal. */
  disable_asciinema: z.boolean().nullish(),
  estimated_duration_sec: estimate,
  expert_time_estimate_min: estimate,
  junior_time_estimate_min: estimate,
});
export type BenchConfig = z.infer<typeof BenchConfig>;

/** Returns the fields that Terminal-Bench does not know, and so ignores. */
export function unknownFields(value: unknown): string[] {
  return Object.keys(value ?? {}).filter((key) => !Object.hasOwn(BenchConfig.shape, key));
}
