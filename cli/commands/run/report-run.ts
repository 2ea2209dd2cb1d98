/** What a run came to, for a person or as one JSON object. */
import type { AlidadeError } from "../../../base/errors.ts";
import type { RolloutRecord } from "../../../base/schema/rollout.ts";
import { described, tallyOf } from "../../../base/statistics/attempt-tally.ts";
import { describedPrompts, GroupPrompts } from "../../../exporters/source/index.ts";
import { describedResumes, eachTrajectory, openIndex, readRollouts, resumeTally } from "../../../rollouts/records/index.ts";
import { print, say } from "../command-line.ts";
import { terminal } from "../terminal.ts";
import { rolloutTable } from "./rollout-table.ts";

type ReportedRun = { path: string; records: RolloutRecord[]; leftOut: readonly string[] };

/** `more`: sentences behind the report. `stopped`: after a stop, how it goes on; null: there was none. `unbegun`: rollouts without a record. */
type EndedRun = ReportedRun & { stopped: string | null; unbegun?: number; more?: readonly string[] };

/** Reports a run and sets the exit code: 130 after a stop, 1 where a rollout has no reward, or was never begun, or a task was left out. */
export async function endRun(run: EndedRun, json: boolean): Promise<void> {
  const { path, records, leftOut, stopped, unbegun = 0, more = [] } = run;
  await openIndex(path);
  await reportRun(run, json);
  for (const text of json ? [] : [...more, ...(stopped === null ? [] : [stopped])]) say(text);
  const isWhole = leftOut.length === 0 && unbegun === 0 && records.every(({ verdict }) => verdict?.reward != null);
  if (stopped !== null) terminal().exitCode = 130;
  else if (!isWhole) terminal().exitCode = 1;
}

/** `json`: prints it as one. */
async function reportRun({ path, records, leftOut }: ReportedRun, json: boolean): Promise<void> {
  const damaged: string[] = [];
  const onDamage = ({ message }: AlidadeError): void => void damaged.push(message);
  const tally = tallyOf((await readRollouts(path, onDamage)).filter(({ state }) => state === "done"));
  const prompts = new GroupPrompts();
  for await (const trajectory of eachTrajectory(path, onDamage)) prompts.add(trajectory);
  const different_prompts = prompts.different;
  if (json) {
    print(
      JSON.stringify({
        run: path,
        rollouts: records,
        left_out: leftOut,
        attempts: tally,
        resumes: resumeTally(records),
        different_prompts,
        damaged,
      }),
    );
    return;
  }
  print(`\n${rolloutTable(records)}`);
  for (const message of leftOut) say(`\nTHIS TASK WAS LEFT OUT: ${message}`);
  if (Object.keys(tally.masked).length > 0) say(`\n${described(tally)}`);
  const resumes = describedResumes(resumeTally(records));
  if (resumes !== null) say(`\n${resumes}`);
  for (const message of damaged) say(`left out: ${message}`);
  for (const alarm of tally.alarms) say(`ALARM: ${alarm}`);
  for (const task of different_prompts) say(describedPrompts(task));
  say(
    `\n${path}: \`alidade show ${records[0]?.rollout_id ?? "<rollout>"} --run ${path}\` prints one; \`alidade export --run ${path} --format flat\` hands them on; \`alidade fidelity --run ${path}\` says what they are worth`,
  );
}
