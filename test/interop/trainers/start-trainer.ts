/** A trainer's own loop in a process: `run.py` with its lines. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { delimiter, join } from "node:path";
import { createInterface } from "node:readline";
import { z } from "zod";
import { TrainedStep } from "../../../examples/train/trained-step.ts";
import { root } from "../../fakes/processes/cli.ts";
import { consumersPlace } from "../consumers/place.ts";

const Step = z.strictObject({
  step: z.number(),
  /** Largest |ratio - 1| of a trained token, before the first update on its batch. */
  worst: z.number(),
  tokens: z.number(),
  /** The trainer's own loss of what came live, and of what an export has of the same rollouts. */
  loss: z.number(),
  exported: z.number(),
  /** How far apart the gradients of the two are, of the largest entry. */
  apart: z.number(),
  rows: z.number(),
  rollouts: z.number(),
});
export type Step = z.infer<typeof Step>;
const Line = z.union([z.strictObject({ ready: z.string() }), z.strictObject({ version: z.string() }), Step, TrainedStep]);
type Line = z.infer<typeof Line>;

type Options = {
  name: string;
  folder: string;
  signal: AbortSignal;
  /** Checkouts that are searched before installed packages. */
  paths?: string[];
  /** Called after each step of a trainer whose reward should rise. */
  onRise?: (step: TrainedStep) => void;
};
export type StartedTrainer = { ready: Promise<unknown>; play: () => Promise<{ steps: Step[]; version: string }> };

/** Imports the trainer, which takes longer than its steps, and waits for `play`. */
export function startTrainer({ name, folder, signal, paths = [], onRise }: Options): StartedTrainer {
  const env = {
    ...process.env,
    PYTHONPATH: [...paths, join(root, "clients/python"), import.meta.dirname].join(delimiter),
    PYTHONDONTWRITEBYTECODE: "1",
    OMP_NUM_THREADS: "1",
  };
  const argv = ["-W", "ignore", join(import.meta.dirname, "run.py"), name, folder];
  const child = spawn(join(consumersPlace(), "venv/bin/python"), argv, { cwd: folder, env, signal, killSignal: "SIGKILL" });
  let said = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    said = (said + text).slice(-8_000);
  });
  const lines: Line[] = [];
  const out = createInterface({ input: child.stdout }).on("line", (text) => {
    const line = Line.parse(JSON.parse(text));
    lines.push(line);
    if ("worst_ratio" in line) onRise?.(line);
  });
  const ended = once(child, "close") as Promise<[number | null]>;
  ended.catch(() => undefined);
  return {
    ready: Promise.race([once(out, "line"), ended]),
    async play() {
      child.stdin.on("error", () => undefined).end("\n");
      const [code] = await ended;
      if (code !== 0) throw new Error(`${name} ended with ${code}: ${JSON.stringify(lines)} ${said}`);
      const version = lines.find((line) => "version" in line)?.version ?? "";
      return { steps: lines.filter((line) => "worst" in line), version };
    },
  };
}
