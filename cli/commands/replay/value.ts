/** `alidade value <rollout>`: forks at each of its turns, and how often they solve the task. */
import { type Command, InvalidArgumentError } from "commander";
import { AlidadeError } from "../../../base/errors.ts";
import { passReward, type RolloutRecord } from "../../../base/schema/rollout.ts";
import { type SessionRecording, turnsToForkAt } from "../../../proxy/index.ts";
import { table } from "../../../view/text/index.ts";
import { print, say, toNumber } from "../command-line.ts";
import { addEngineFlags, type EngineFlags } from "../flags/engine-flags.ts";
import { between, short } from "../overview/evaluation-text.ts";
import { terminal } from "../terminal.ts";
import { makeReplays, type ReplayFlags } from "./make-replays.ts";
import { addReplayFlags, toTurn, wholeNumber } from "./replay-flags.ts";
import { chartLine, type SolveRate, solveRates } from "./solve-rates.ts";

type ValueFlags = ReplayFlags &
  EngineFlags & {
    at?: number[];
    every: number;
    samples: number;
    concurrency: number;
    pass: number;
    model?: string;
    rendered?: boolean;
  };

export function value(program: Command): void {
  addReplayFlags(addEngineFlags(program.command("value")))
    .description(
      "Forks the rollout behind each of its turns, and tells how often the forks solve the task: the value of the state that it was in. A rate has\nWilson's 95 % interval; a fork without a reward is counted as a fork and is in no other number. Turns beside which the main agent\nmade another call are left out, as `alidade fork` refuses them. The forks are a run folder of their own, with a group for each turn.",
    )
    .argument("[rollout]", "id of a rollout or session, or <task>/<index> (default: the only one)")
    .option("--at <turn>", "a turn to fork at, as `alidade show` numbers them; several times for several (default: all)", collectTurn)
    .option("--every <number>", "of all turns each so many-th one, from the beginning", wholeNumber, 1)
    .option("-n, --samples <number>", "forks at each turn", wholeNumber, 4)
    .option("--concurrency <number>", "forks at once", wholeNumber, 2)
    .option("--pass <reward>", "the reward from which on the task is solved", toNumber, passReward)
    .option("--model <name>", "another model goes on; its prompts are rendered anew")
    .option("--rendered", "let the engine render the prompt anew where it cannot take the recorded ids")
    .option("--json", "print one JSON object")
    .addHelpText(
      "after",
      "\nExamples:\n  alidade value slugify-accents/0 -n 8\n  alidade value slugify-accents/0 --every 3 --model other-model",
    )
    .action(async (name: string | undefined, flags: ValueFlags) => {
      const { engine, kind, apiKeyEnv, samples, concurrency, pass, rendered = false, model = null } = flags;
      const engines = { engine, ...(kind !== undefined && { kind }), ...(apiKeyEnv !== undefined && { apiKeyEnv }) };
      const sampled = { samples, atOnce: concurrency, rendered, model, edit: null, engine: engines };
      const wanted = { turns: flags.at ?? ((recording: SessionRecording) => chosenTurns(recording, flags.every)), sampled };
      const { path, source, records } = await makeReplays(name, { verb: "value", flags, wanted }, terminal().stopSignal());
      const rates = solveRates(records.map(endOf), pass);
      const reward = source.verdict?.reward ?? null;
      if (flags.json) print(JSON.stringify({ run: path, rollout_id: source.rollout_id, reward, pass, turns: rates }));
      else {
        print(rateTable(rates));
        say(`\nthe rollout itself: reward ${reward ?? "none"}. ${path} has the forks: \`alidade ls --run ${path}\` lists them`);
      }
      if (rates.some(({ forks, measured }) => measured < forks)) terminal().exitCode = 1;
    });
}

function chosenTurns(recording: SessionRecording, every: number): number[] {
  const turns = turnsToForkAt(recording).filter((_, index) => index % every === 0);
  if (turns.length === 0)
    throw new AlidadeError(
      "request_invalid",
      "no turn of the rollout can be forked: it has none, or beside each of them its main agent made another call",
      { param: "at" },
    );
  return turns;
}

function endOf({ forked_from, verdict, error }: RolloutRecord): { turn: number; reward: number | null } {
  return { turn: forked_from?.turn ?? 0, reward: error?.code === "replay_diverged" ? null : (verdict?.reward ?? null) };
}

function rateTable(rates: readonly SolveRate[]): string {
  return table(
    ["behind turn", "forks", "measured", "solved", "rate", "95 %", "0 to 1"],
    rates.map((one) => [one.turn, one.forks, one.measured, one.solved, short(one.rate), between(one.interval), chartLine(one)]),
  );
}

function collectTurn(text: string, all: number[] = []): number[] {
  const turn = toTurn(text);
  if (all.includes(turn)) throw new InvalidArgumentError("Give each turn once.");
  return [...all, turn];
}
