/** `alidade audit`: checks that the recorded logprobs are the model's own, in the recorded context. */
import { open } from "node:fs/promises";
import { join } from "node:path";
import type { Command } from "commander";
import { AlidadeError, messageOf } from "../../../base/errors.ts";
import type { Media } from "../../../base/media/media.ts";
import type { Trajectory } from "../../../base/schema/trajectory.ts";
import { type Engine, type EngineFacts, openGguf } from "../../../engines/index.ts";
import { DiskStore, privateFileMode } from "../../../proxy/store/index.ts";
import { type Audit, auditTrajectory, defaultTolerance, type Score, type TrainerLogprobs } from "../../../reconstruct/index.ts";
import { table } from "../../../view/text/index.ts";
import { print, say, toNats } from "../command-line.ts";
import { trajectoriesOf } from "../overview/trajectories-of.ts";
import { terminal } from "../terminal.ts";
import { findTrajectory } from "./find-trajectory.ts";
import { runFolderOf } from "./run-folder-of.ts";
import { openScoringEngine, scoreAt } from "./scoring-engine.ts";

export function audit(program: Command): void {
  program
    .command("audit")
    .description(
      "Scores every sampled token again by teacher forcing, in the context that the trajectory says it was sampled in, and compares with\nthe recorded logprob. Finds contexts that were never there, edited tokens and shifted logprobs. What was sampled under a grammar or\nwith processed logprobs is listed as not comparable. Ends with 1 where anything differs, or nothing could be compared.",
    )
    .argument("[rollout]", "one rollout, session or trajectory (default: all of the run)")
    .option("-r, --run <folder>", "folder of the run (default: the newest below runs/)")
    .option("-c, --config <file>", "YAML file with any of the keys of `alidade config --schema`")
    .option("-e, --engine <url>", "server that has the weights which sampled it, or `practice`")
    .option("-k, --kind <name>", "what server it is: see engine.kind in `alidade config --schema`")
    .option("--api-key-env <name>", "variable that holds the server's key")
    .option("--gguf <file>", "score with llama.cpp in this process instead: an independent second opinion (needs node-llama-cpp)")
    .option("--policy <version>", "only what this policy version sampled")
    .option("--tolerance <nats>", "largest difference that passes; bfloat16 needs about 0.05", toNats, defaultTolerance)
    .option("--logprobs <file>", "write the scored logprobs: a new file for `fidelity --trainer-logprobs` and `view --trainer-logprobs`")
    .option("--json", "print one JSON object a trajectory")
    .addHelpText(
      "after",
      "\nExamples:\n  alidade audit --engine http://127.0.0.1:8000\n  alidade audit merge-ranges/0 --engine practice\n  alidade audit --gguf policy.gguf --json\n  alidade audit --engine http://127.0.0.1:8000 --logprobs scored.jsonl",
    )
    .action(async (rollout: string | undefined, flags: AuditFlags) => {
      const signal = terminal().stopSignal();
      const folder = await runFolderOf(flags.run);
      await using scorer = await openScorer(flags, signal);
      const store = new DiskStore(join(folder, "sessions"));
      await using scored = flags.logprobs === undefined ? null : await openScored(flags.logprobs);
      const options = { tolerance: flags.tolerance, policyVersion: flags.policy };
      const totals = { compared: 0, wrong: 0, worst: 0 };
      const rows: string[][] = [];
      // What cannot be read was not compared: the audit has not passed.
      const onLeftOut = (message: string): void => {
        say(`alidade: ${message}`);
        terminal().exitCode = 1;
      };
      for await (const trajectory of rollout === undefined
        ? trajectoriesOf(folder, onLeftOut)
        : [await findTrajectory(folder, rollout, (message) => say(`alidade: ${message}`))]) {
        signal.throwIfAborted();
        const audited = await auditTrajectory(trajectory, scorer.of(trajectory, store.media), {
          ...options,
          readsImages: scorer.readsImages,
          onScored: (call_id, logprobs) => scored?.keep({ call_id, rollout_id: trajectory.rollout_id, logprobs, policy_version: null }),
        });
        await scored?.write();
        totals.compared += audited.compared;
        totals.wrong += audited.calls.reduce((sum, call) => sum + call.wrong, 0);
        totals.worst = Math.max(totals.worst, audited.worst ?? 0);
        const name = trajectory.rollout_id ?? trajectory.session_id;
        if (flags.json) print(JSON.stringify({ rollout: name, trajectory_id: trajectory.trajectory_id, ...audited }));
        else {
          rows.push(rowOf(name, audited));
          for (const line of differencesOf(name, audited)) say(line);
        }
      }
      if (!flags.json) print(table(["rollout", "calls", "compared", "worst |Δ| nats", "wrong", "not comparable"], rows));
      say(verdict(totals, flags.tolerance));
      if (totals.wrong > 0 || totals.compared === 0) terminal().exitCode = 1;
    });
}

type AuditFlags = {
  run?: string;
  config?: string;
  engine?: string;
  kind?: string;
  apiKeyEnv?: string;
  gguf?: string;
  policy?: string;
  tolerance: number;
  logprobs?: string;
  json?: boolean;
};

/** The file of `--logprobs`. The engine does not say which weights it has, so no line names a policy version. */
async function openScored(path: string) {
  const file = await open(path, "wx", privateFileMode).catch((error: unknown) => {
    throw new AlidadeError("config_invalid", `--logprobs is ${path}, which cannot be made: ${messageOf(error)}`, { param: "logprobs" });
  });
  let lines = "";
  return {
    keep: (line: TrainerLogprobs) => {
      lines += `${JSON.stringify(line)}\n`;
    },
    write: async () => {
      await file.appendFile(lines);
      lines = "";
    },
    [Symbol.asyncDispose]: () => file.close(),
  };
}

type Scorer = AsyncDisposable & { readsImages: boolean; of(trajectory: Trajectory, media: Media): Score };

async function openScorer(flags: AuditFlags, signal: AbortSignal): Promise<Scorer> {
  if (flags.gguf !== undefined) {
    const gguf = await openGguf(flags.gguf);
    return { readsImages: false, of: () => gguf.score, [Symbol.asyncDispose]: () => gguf[Symbol.asyncDispose]() };
  }
  const opened = await openScoringEngine(flags, "audit with vLLM, SGLang or --gguf", signal);
  const { engine, facts } = opened;
  return {
    readsImages: facts.images !== undefined,
    of: (trajectory, media) => scoreAt(engine, modelOf(trajectory, engine, facts), { trajectory, media, signal }),
    [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose](),
  };
}

/** The model that sampled, where the engine still serves it. */
function modelOf({ calls }: Trajectory, { baseUrl }: Engine, { models }: EngineFacts): string {
  const named = calls.findLast((call) => call.engine_model !== null)?.engine_model;
  const model = models.find((one) => one === named) ?? models[0];
  if (model === undefined) throw new AlidadeError("engine_error", `the engine at ${baseUrl} serves no model`, { param: "engine" });
  return model;
}

function rowOf(name: string, audited: Audit): string[] {
  const apart = Map.groupBy(
    audited.calls.filter((call) => call.status === "not_comparable"),
    (call) => call.reason ?? "",
  );
  return [
    name,
    String(audited.calls.length),
    String(audited.compared),
    audited.worst === null ? "" : audited.worst.toExponential(1),
    String(audited.calls.reduce((sum, call) => sum + call.wrong, 0)),
    [...apart].map(([reason, calls]) => `${calls.length} ${reason}`).join(", "),
  ];
}

function differencesOf(name: string, audited: Audit): string[] {
  return audited.calls.flatMap(({ status, ordinal, wrong, compared, worst }) =>
    status === "mismatch" && worst
      ? [
          `${name}, call ${ordinal}: ${wrong} of ${compared} tokens differ; most at sampled token ${worst.at} (id ${worst.token_id}): recorded ${worst.recorded}, scored ${worst.scored}`,
        ]
      : [],
  );
}

function verdict({ compared, wrong, worst }: { compared: number; wrong: number; worst: number }, tolerance: number): string {
  if (compared === 0) return "alidade: nothing could be compared, so nothing is shown.";
  const found = `${compared} tokens compared, worst |Δ| ${worst.toExponential(1)} nats`;
  if (wrong === 0) return `alidade: ${found}: all within ${tolerance}.`;
  return `alidade: ${found}: ${wrong} differ by more than ${tolerance}. Other weights, another precision (--tolerance), a context that was not this one, or a cut that the server makes by default.`;
}
