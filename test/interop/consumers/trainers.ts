/**
 * The trainers whose own code reads our files, each with the export format that it reads. `check.py` loads a file with
 * `trainers/<name>.py` and says the worst importance ratio of what that trainer would train.
 */
import { spawn } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { z } from "zod";
import { consumerScripts, consumersPlace } from "./place.ts";

/**
 * The rows of a rollout that are trained. `longest`: the trainer knows one row a rollout. `first`: it also wants the prompt
 * with which the group's rollouts begin, so a row that begins later, where a context broke, is none for it.
 */
export const trainers = [
  { name: "trl", format: "trl-grpo", rows: "longest" },
  { name: "trl_async", format: "trl-async", rows: "all" },
  { name: "openenv", format: "openenv", rows: "all" },
  { name: "verifiers", format: "verifiers", rows: "all" },
  { name: "tinker", format: "tinker", rows: "all" },
  { name: "nemo_gym", format: "nemo-gym", rows: "first" },
  { name: "atif", format: "atif", rows: "all" },
  { name: "harbor", format: "harbor", rows: "all" },
  { name: "verl", format: "verl", rows: "all" },
  { name: "skyrl", format: "skyrl", rows: "all" },
  { name: "openrlhf", format: "openrlhf", rows: "longest" },
  { name: "areal", format: "areal", rows: "longest" },
  { name: "agent_lightning", format: "agent-lightning", rows: "all" },
] as const;

export type Trainer = (typeof trainers)[number];

const Answer = z.strictObject({
  trainer: z.string(),
  version: z.string().optional(),
  /** Tokens with mask 1, as the trainer sees them. */
  trained: z.number().optional(),
  /** Largest |ratio - 1| over them; of the file, and of one whose logprobs are one token late. */
  worst: z.number().nullable().optional(),
  shifted: z.number().nullable().optional(),
  import_seconds: z.number().optional(),
  seconds: z.number().optional(),
  error: z.string().optional(),
});
export type Answer = z.infer<typeof Answer>;

export type Question = { trainer: string; file: string; shifted: string };

/** One Python for all of the questions, for importing the trainers is most of the time. Yields as each is answered. */
export async function* askTrainers(model: string, questions: Question[], folder: string, signal: AbortSignal): AsyncIterable<Answer> {
  const request = join(folder, `${questions[0]?.trainer ?? "no"}-request.json`);
  await writeFile(request, JSON.stringify(questions));
  const python = spawn(join(consumersPlace(), "venv/bin/python"), ["-W", "ignore", join(consumerScripts, "check.py"), model, request], {
    stdio: ["ignore", "pipe", "pipe"],
    signal,
    killSignal: "SIGKILL",
    env: { ...process.env, OMP_NUM_THREADS: "1", PYTHONDONTWRITEBYTECODE: "1" },
  });
  const ended = new Promise<number | null>((resolve, reject) => {
    python.once("error", reject);
    python.once("close", resolve);
  });
  // Where reading breaks off, nothing awaits it.
  ended.catch(() => undefined);
  let said = "";
  python.stderr.setEncoding("utf8").on("data", (text: string) => {
    said = (said + text).slice(-8_000);
  });
  const open = new Set(questions.map(({ trainer }) => trainer));
  for await (const line of createInterface({ input: python.stdout })) {
    const answer = Answer.parse(JSON.parse(line));
    open.delete(answer.trainer);
    yield answer.error === undefined ? answer : { ...answer, error: `${answer.error}\n${said}` };
  }
  const code = await ended;
  for (const trainer of open) yield { trainer, error: `Python ended with ${code} before it answered.\n${said}` };
}
