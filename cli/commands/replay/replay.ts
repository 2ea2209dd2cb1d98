/** `alidade replay <rollout>`: its harness once more, in a fresh sandbox, answered from the record. */
import type { Command } from "commander";
import type { RolloutRecord } from "../../../base/schema/rollout.ts";
import { table } from "../../../view/text/index.ts";
import { print, say } from "../command-line.ts";
import { terminal } from "../terminal.ts";
import { makeReplays, type ReplayFlags } from "./make-replays.ts";
import { addReplayFlags, toTurn } from "./replay-flags.ts";

export function replay(program: Command): void {
  addReplayFlags(program.command("replay"))
    .description(
      "Runs the rollout's harness once more in a fresh sandbox. Its answers come from the record, with the same ids of tool calls, and its tools\nreally run; no engine is asked. Each request is held against the recorded one: equal, values (digits, ids, dates, temporary paths), words,\nor structure, which ends the replay as `replay_diverged`. The work is graded. Ends with 1 where it diverged, or has another reward.",
    )
    .argument("[rollout]", "id of a rollout or session, or <task>/<index> (default: the only one)")
    .option("--until <turn>", "the last turn that is answered, as `alidade show` numbers them (default: all)", toTurn)
    .option("--json", "print one JSON object")
    .addHelpText(
      "after",
      "\nExamples:\n  alidade replay slugify-accents/0\n  alidade replay slugify-accents/0 --until 3 --run runs/run1abc",
    )
    .action(async (name: string | undefined, flags: ReplayFlags & { until?: number }) => {
      const wanted = { turns: [flags.until ?? null], sampled: null };
      const { path, source, records } = await makeReplays(name, { verb: "replay", flags, wanted }, terminal().stopSignal());
      const [record] = records as [RolloutRecord];
      const [before, after] = [source.verdict?.reward ?? null, record.verdict?.reward ?? null];
      const hasArrived = record.replay?.how === "arrived";
      if (flags.json) print(JSON.stringify({ run: path, rollout: record, recorded_reward: before }));
      else {
        print(classTable(record));
        if (record.error) say(`\n${record.error.code}: ${record.error.message}`);
        say(`\nreward ${after ?? "none"}, recorded ${before ?? "none"}; \`alidade show ${record.rollout_id} --run ${path}\` prints it`);
      }
      if (!hasArrived || (flags.until === undefined && before !== after)) terminal().exitCode = 1;
    });
}

function classTable({ replay }: RolloutRecord): string {
  const { how = null, turns = 0, classes = {}, difference = null } = replay ?? {};
  const of = (name: string): number => classes[name] ?? 0;
  const row = [how ?? "not arrived", turns, of("equal"), of("values"), of("words"), of("structure"), difference ?? ""];
  return table(["replay", "turns", "equal", "values", "words", "structure", "first difference of the largest class"], [row]);
}
