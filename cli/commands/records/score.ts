/** `alidade score <run>`: a teacher's logprobs of what a run sampled, beside the policy's own. */
import { join } from "node:path";
import { type Command, InvalidArgumentError } from "commander";
import { DiskStore } from "../../../proxy/store/index.ts";
import { type ScoredRollout, type Scoring, score as scoreRun } from "../../../rollouts/index.ts";
import { openIndex } from "../../../rollouts/records/index.ts";
import { table } from "../../../view/text/index.ts";
import { mostTeacherTop } from "../../config.ts";
import { print, say } from "../command-line.ts";
import { addFilters, type FilterFlags } from "../overview/filters.ts";
import { meantRollouts } from "../overview/meant-rollouts.ts";
import { terminal } from "../terminal.ts";
import { teacherAt } from "./open-teacher.ts";
import { runFolderOf } from "./run-folder-of.ts";
import { openScoringEngine, type ScoringFlags } from "./scoring-engine.ts";

type ScoreFlags = FilterFlags & ScoringFlags & { model?: string; topK?: number; concurrency: number; json?: boolean };

export function score(program: Command): void {
  addFilters(program.command("score"))
    .description(
      "Has another model, a teacher, score every token that a run sampled, by teacher forcing in the context that it was sampled in.\nIts logprobs (nats, temperature 1) stand beside the recorded ones, which do not change, and `export` writes them for trainers that\ndistil. A token without one is null, with the reason. The teacher must have the policy's tokenizer: another one is refused first.\nBroken off, the same command goes on and scores no rollout twice. Another teacher takes the place of the one before. Ends with 1\nwhere a rollout could not be scored.",
    )
    .argument("<run>", "folder of the run")
    .argument("[rollouts...]", "of these only: rollout id, or TASK/SAMPLE (default: all of the run)")
    .option("-c, --config <file>", "YAML file with any of the keys of `alidade config --schema`")
    .option("-e, --engine <url>", "server of the teacher, or `practice`")
    .option("-k, --kind <name>", "what server it is: vllm (the default) or sglang")
    .option("--api-key-env <name>", "variable that holds the server's key")
    .option("--model <name>", "model of that server that scores (needed where it serves several)")
    .option(
      "--top-k <number>",
      `keep also so many of its likeliest tokens at each place, at most ${mostTeacherTop}; each costs some 25 bytes a sampled token (vLLM serves 20 unless --max-logprobs)`,
      topCount,
    )
    .option("--concurrency <number>", "rollouts at once", wholeNumber, 4)
    .option(
      "--json",
      "print one JSON object: the teacher, each rollout with its tokens and its mean gap, and those not scored with the reason",
    )
    .addHelpText(
      "after",
      "\nThe mean gap is the recorded logprob less the teacher's, in nats a token: an estimate of how far the policy is from the teacher.\n\nExamples:\n  alidade score runs/run1abc --engine http://127.0.0.1:8001\n  alidade score runs/run1abc --engine http://127.0.0.1:8001 --model Qwen3-32B --reward 1 --json\n  alidade score runs/run1abc --engine http://127.0.0.1:8001 --top-k 8\n  alidade export --run runs/run1abc --format verl --out rows.jsonl     # with teacher_logprobs",
    )
    .action(async (folder: string, names: string[], flags: ScoreFlags) => {
      const signal = terminal().stopSignal();
      const path = await runFolderOf(folder);
      const note = (text: string) => say(`  ${text}`);
      const isWanted = await meantRollouts(path, names, flags);
      await using opened = await openScoringEngine(flags, "take a teacher at vLLM or SGLang", signal);
      const words = { model: "--model", top_k: "--top-k" };
      const { model: named, topK: top_k } = flags;
      const { media } = new DiskStore(join(path, "sessions"));
      const asked = { url: flags.engine, words, ...(named !== undefined && { model: named }), ...(top_k !== undefined && { top_k }) };
      const askable = teacherAt(opened, asked, media);
      const { ask: _ask, ...teacher } = askable;
      const { model } = teacher;
      let done = 0;
      let all = 0;
      const scoring = await scoreRun(
        {
          path,
          teacher: askable,
          atOnce: flags.concurrency,
          isWanted,
          onBegin: (begun) => {
            all = begun.rollouts;
            for (const line of beginning(model, begun)) note(line);
          },
          onScored: (one) => note(`${++done} of ${all}: ${nameOf(one)}: ${tokensOf(one)}`),
          onDamage: ({ message }) => note(`left out: ${message}`),
        },
        signal,
      ).catch((error: unknown) => {
        if (!signal.aborted) {
          if (done > 0) note(`broken off: the same command goes on after ${done} of ${all} rollouts`);
          throw error;
        }
        note(`stopped: the same command goes on after ${done} of ${all} rollouts`);
        return null;
      });
      if (scoring === null) {
        terminal().exitCode = 130;
        return;
      }
      await openIndex(path);
      print(flags.json ? JSON.stringify({ run: path, teacher, ...toJson(scoring) }) : tableOf(scoring, model));
      if (scoring.left.length > 0) terminal().exitCode = 1;
    });
}

type ScoringPlan = { rollouts: number; again: number; unknown: number; replaced: readonly string[] };

function beginning(model: string, { rollouts, again, unknown, replaced }: ScoringPlan): string[] {
  return [
    `${model} scores ${rollouts} rollouts`,
    ...(again > 0 ? [`an earlier call had scored ${again} of them: they are not scored again`] : []),
    ...(replaced.length > 0 ? [`its logprobs take the place of those of ${replaced.join(", ")}`] : []),
    ...(unknown > 0
      ? [`of ${unknown} rollouts it is unknown whether the teacher has their tokenizer: an engine told no fingerprint (\`alidade doctor\`)`]
      : []),
  ];
}

function toJson({ scored, already, left }: Scoring) {
  return { scored, already_scored: already, not_scored: left };
}

function tableOf({ scored, already, left }: Scoring, model: string): string {
  const rows = scored.map((one) => [
    nameOf(one),
    String(one.sampled_tokens),
    String(one.scored_tokens),
    one.mean_gap === null ? "" : one.mean_gap.toFixed(4),
    String(one.revision),
    reasonsOf(one),
  ]);
  const parts = [
    ...(rows.length > 0 ? [table(["rollout", "sampled", "scored", "mean gap", "revision", "null because"], rows)] : []),
    ...(left.length > 0
      ? [
          table(
            ["not scored", "reason"],
            left.map((one) => [nameOf(one), one.reason]),
          ),
        ]
      : []),
    `${model} scored ${scored.length} rollouts${already.length > 0 ? `, and had scored ${already.length} before` : ""}`,
  ];
  return parts.join("\n\n");
}

function tokensOf(one: ScoredRollout): string {
  const why = reasonsOf(one);
  return `${one.scored_tokens} of ${one.sampled_tokens} tokens${why === "" ? "" : ` (${why})`}`;
}

function reasonsOf({ unscored }: ScoredRollout): string {
  return Object.entries(unscored)
    .map(([reason, tokens]) => `${tokens} ${reason.replaceAll("_", " ")}`)
    .join(", ");
}

function nameOf({ task_id, sample_index }: { task_id: string; sample_index: number }): string {
  return `${task_id}/${sample_index}`;
}

function topCount(text: string): number {
  const top = wholeNumber(text);
  if (top > mostTeacherTop) throw new InvalidArgumentError(`Give at most ${mostTeacherTop}.`);
  return top;
}

function wholeNumber(text: string): number {
  if (!/^[1-9]\d*$/.test(text)) throw new InvalidArgumentError("Give a whole number of 1 or more.");
  return Number(text);
}
