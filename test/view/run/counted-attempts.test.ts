/** The fidelity report from a run's index says what the one from its tokens says. */
import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { trajectoriesOf } from "../../../cli/commands/overview/trajectories-of.ts";
import { DiskStore } from "../../../proxy/store/disk.ts";
import { reconstruct } from "../../../reconstruct/index.ts";
import { openIndex } from "../../../rollouts/records/run-index.ts";
import { FidelitySummarizer } from "../../../view/fidelity/summary.ts";
import { countedAttempts } from "../../../view/run/counted-attempts.ts";
import { scratchFolder } from "../../fakes/machine/scratch-folder.ts";
import { goldenSibling, goldenTrajectory } from "../../fakes/records/golden-session.ts";
import { LogBuilder, user } from "../../fakes/records/log-builder.ts";
import { namedCases } from "../../reconstruct/named-cases.ts";

const scratch = scratchFolder("counted-attempts");

test("every named case, groups, attempts, open sessions and damaged lines: the same numbers and the same sentences", async () => {
  const folder = join(scratch, "run");
  await mkdir(join(folder, "sessions"), { recursive: true });
  const cases = namedCases.map(({ log }, at) => ({ ...reconstruct(log().entries), rollout_id: `roll${at}`, session_id: `ses${at}` }));
  const tried = { ...goldenTrajectory({ in_loss: false, mask_reason: "engine_error" }), rollout_id: "again", session_id: "sesagain" };
  const lines = [...cases, goldenTrajectory(), goldenSibling(), tried, { ...tried, attempt: 2, in_loss: true, mask_reason: null }];
  const text = lines.map((line) => `${JSON.stringify(line)}\n`);
  await writeFile(join(folder, "trajectories.jsonl"), `${text.join("")}{"no":"trajectory"}\n`);
  const log = new LogBuilder({ rollout_id: null });
  const write = (id: string) =>
    writeFile(
      join(folder, "sessions", `${id}.jsonl`),
      log.entries.map((entry) => `${JSON.stringify(entry)}\n`.replaceAll("sestest", id)).join(""),
    );
  await write("sessilent");
  log.call({ messages: [user("hi")] });
  await write("seslive");
  await writeFile(join(folder, "sessions", "sesbroken.jsonl"), "no log\n");

  const [whole, indexed] = [new FidelitySummarizer({}), new FidelitySummarizer({})];
  const [said, saidByIndex]: [string[], string[]] = [[], []];
  const collect = (to: string[]) => (message: string, rollouts: number) => void to.push(`${message} (${rollouts})`);
  for await (const trajectory of trajectoriesOf(folder, collect(said))) whole.add(trajectory);
  const logs = new Set(await new DiskStore(join(folder, "sessions")).list());
  for (const figures of countedAttempts(folder, await openIndex(folder), logs, collect(saidByIndex))) indexed.addFigures(figures);
  assert.deepEqual(indexed.summary, whole.summary);
  assert.deepEqual(saidByIndex.toSorted(), said.toSorted());
  assert.ok(indexed.summary.rollouts > namedCases.length && indexed.summary.causes.length > 3);
});
