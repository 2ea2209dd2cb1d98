/** The contract that every exporter in the list keeps. What each one says of the golden session: `test/exporters/`. */
import assert from "node:assert/strict";
import { access } from "node:fs/promises";
import { Writable } from "node:stream";
import { test } from "node:test";
import type { Message, Sampling } from "../../base/schema/message.ts";
import type { Trajectory } from "../../base/schema/trajectory.ts";
import { exportTrajectories } from "../../exporters/export-trajectories.ts";
import { emptyReport } from "../../exporters/exporter.ts";
import { exporters } from "../../exporters/registry.ts";
import { reconstruct } from "../../reconstruct/index.ts";
import { exported } from "../fakes/records/exported.ts";
import { goldenSibling, goldenTrajectory } from "../fakes/records/golden-session.ts";
import { assistant, LogBuilder, user } from "../fakes/records/log-builder.ts";
import { pad, pictureBytes, picturedGroup, pictureSizes } from "../fakes/records/pictured-group.ts";
import { loaderFile } from "./exporters-readme.ts";

const group = (): Trajectory[] => [goldenTrajectory(), goldenSibling()];

/** A rollout whose second call is like no trained one, and its sibling. */
function withOddCall(odd: Parameters<LogBuilder["call"]>[0], sampling?: Sampling): Trajectory[] {
  const log = new LogBuilder();
  log.call({ messages: [user("one")], says: assistant("fine") });
  const begun = log.entries.length;
  log.call(odd);
  for (const entry of log.entries.slice(begun)) if (entry.type === "call_begun" && sampling) entry.effective_sampling = sampling;
  const other = new LogBuilder({ rollout_id: "roll2", sample_index: 1 });
  const [opened] = other.entries;
  if (opened?.type === "opened") opened.session_id = "sesother";
  other.call({ messages: [user("one")], says: assistant("no") });
  const facts = { status: "graded", group: { size: 2 } } as const;
  return [reconstruct(log.entries, { ...facts, reward: 1 }), reconstruct(other.entries, { ...facts, reward: 0 })];
}

for (const exporter of exporters) {
  const isRl = exporter.objective === "rl";

  test(`${exporter.name}: counts the rows that it writes, and each line is one JSON object`, async () => {
    const { report, rows } = await exported(exporter, group());
    assert.equal(report.trajectories, 2);
    assert.ok(report.rows > 0);
    if (exporter.extension === "jsonl") assert.equal(rows.length, report.rows);
    for (const row of rows) assert.equal(Object.prototype.toString.call(row), "[object Object]");
  });

  test(`${exporter.name}: nothing in gives no rows out`, async () => {
    const { report, bytes } = await exported(exporter, []);
    assert.deepEqual(report, emptyReport());
    if (exporter.extension === "jsonl") assert.equal(bytes.length, 0);
  });

  test(`${exporter.name}: a reward that was not measured is never a zero`, async () => {
    const { rows } = await exported(exporter, [goldenTrajectory({ reward: null }), goldenSibling({ reward: null })]);
    for (const row of rows) assert.deepEqual(zeroRewards(row), []);
  });

  // Canonical is the trajectory itself, which has both.
  if (exporter.extension === "jsonl" && exporter.name !== "canonical")
    test(`${exporter.name}: a tool's schema says its numbers as the harness wrote them, where it is said at all`, async () => {
      const schema = { parameters: { minLength: 1 }, parameters_source: '{"minLength":1.0}' };
      const declared = group().map((trajectory) => {
        const tools = Object.entries(trajectory.tools).map(([hash, list]) => [hash, list.map((tool) => ({ ...tool, ...schema }))]);
        return { ...trajectory, tools: Object.fromEntries(tools) };
      });
      const { bytes } = await exported(exporter, declared);
      const text = bytes.toString();
      assert.deepEqual(new Set(text.match(/minLength\\?":[\d.]+/g)), new Set(text.match(/minLength\\?":1\.0/g)));
    });

  test(`${exporter.name}: of a rollout that was run again ${exporter.everyAttempt ? "every" : "only the last"} attempt is written`, async () => {
    const again = goldenTrajectory({ attempt: 2, reward: 0.5 });
    for (const attempts of [
      [goldenTrajectory(), again],
      [again, goldenTrajectory()],
    ]) {
      const { bytes, report } = await exported(exporter, [...attempts, goldenSibling()]);
      const wanted = exporter.everyAttempt ? [...attempts, goldenSibling()] : [again, goldenSibling()];
      // One at a time, as of a run that holds nothing else.
      const { bytes: want } = await exported(
        exporter,
        (async function* () {
          yield* wanted;
        })(),
      );
      assert.ok(bytes.equals(want));
      assert.deepEqual([report.trajectories, report.left_out_rollouts.superseded], [3, exporter.everyAttempt ? undefined : 1]);
    }
  });

  if (!exporter.wholeGroups)
    test(`${exporter.name}: reads one trajectory at a time and obeys a slow output`, async () => {
      let read = 0;
      let written = 0;
      let ahead = 0;
      async function* source(): AsyncIterable<Trajectory> {
        for (let at = 0; at < 20; at++) {
          read++;
          yield* group();
        }
      }
      const slow = new Writable({
        highWaterMark: 1,
        write: (_chunk, _encoding, done) => {
          written++;
          setImmediate(() => {
            ahead = Math.max(ahead, read - written);
            done();
          });
        },
      });
      await exportTrajectories(exporter, source(), slow);
      assert.equal(read, 20);
      if (exporter.extension === "jsonl") assert.ok(ahead <= 3, `${ahead} groups were read ahead of the output`);
    });

  test(`${exporter.name}: a broken output and an aborted signal end the export with an error`, async () => {
    const broken = new Writable({ write: (_chunk, _encoding, done) => done(new Error("disk full")) });
    await assert.rejects(exportTrajectories(exporter, group(), broken), /disk full/);
    const sink = new Writable({ write: (_chunk, _encoding, done) => done() });
    await assert.rejects(exportTrajectories(exporter, group(), sink, { signal: AbortSignal.abort() }), { name: "AbortError" });
  });

  test(`${exporter.name}: has no option of another format`, async () => {
    await assert.rejects(exported(exporter, group(), { own: { no_such_option: 1 } }), { code: "config_invalid", param: "no_such_option" });
  });

  test(`${exporter.name}: says in its docs how it fills, selects or refuses rows, and its loader exists`, async () => {
    assert.match(exporter.docs.rows, /^[A-Z].*\.$/);
    assert.ok(exporter.title.length < 120);
    if (exporter.docs.loader) await access(new URL(`../../${loaderFile(exporter.docs.loader)}`, import.meta.url));
  });

  if (exporter.selects !== false && exporter.objective !== "any")
    test(`${exporter.name}: says either where pictures stand, or in its docs why it cannot`, () => {
      assert.notEqual(exporter.saysPictures === true, exporter.docs.pictures !== undefined);
      if (exporter.docs.pictures) assert.match(exporter.docs.pictures, /^[a-zA-Z].*\.$/);
    });

  if (isRl) {
    test(`${exporter.name}: leaves out a call without logprobs, with the reason`, async () => {
      const trajectories = withOddCall({ messages: [user("two")], says: assistant("unknown word"), logprobs: null });
      const { report } = await exported(exporter, trajectories);
      assert.equal(report.left_out.no_logprob, 1);
      assert.ok(report.rows > 0);
    });

    test(`${exporter.name}: leaves out what was sampled under a grammar unless it is allowed`, async () => {
      const odd = { messages: [user("two")], says: assistant("yes sir"), logprobs: [-0.5, -0.25, -1], grammar: true };
      assert.equal((await exported(exporter, withOddCall(odd))).report.left_out.grammar, 1);
      const allowed = await exported(exporter, withOddCall(odd), { allowGrammar: true });
      assert.equal(allowed.report.left_out.grammar, undefined);
    });

    test(`${exporter.name}: leaves out a call that was sampled from a cut distribution`, async () => {
      const trajectories = withOddCall({ messages: [user("two")], says: assistant("cut") }, { temperature: 1, top_p: 0.5 });
      assert.equal((await exported(exporter, trajectories)).report.left_out.truncated_sampling, 1);
    });

    test(`${exporter.name}: leaves out a call of another temperature than the trainer's, unless it can say each`, async () => {
      const trajectories = withOddCall({ messages: [user("two")], says: assistant("hot") }, { temperature: 0.5 });
      const { left_out } = (await exported(exporter, trajectories)).report;
      assert.equal(left_out.other_temperature, exporter.saysTemperatures ? undefined : 1);
    });

    test(`${exporter.name}: leaves out a call that saw an image, for its tokens do not hold it`, async () => {
      const seen: Message = { role: "user", parts: [{ type: "image", url: "data:image/png;base64,AA==" }] };
      const { left_out } = (await exported(exporter, withOddCall({ messages: [seen], says: assistant("a cat") }))).report;
      assert.equal(left_out.images, 1);
    });

    test(`${exporter.name}: says where pictures stand among its ids, or leaves out calls that saw pictures`, async () => {
      const { report, rows } = await exported(exporter, picturedGroup(), { media: pictureBytes });
      assert.equal(report.left_out.images, exporter.saysPictures ? undefined : 3);
      const shown = rows.flatMap(picturesIn);
      if (exporter.extension === "jsonl") assert.deepEqual(shown, exporter.saysPictures ? pictureSizes : []);
      // A row holds no bytes of pictures: they are in files beside it.
      if (exporter.saysPictures && exporter.namesPictures) assert.ok(!JSON.stringify(rows).includes("base64"));
    });

    test(`${exporter.name}: drops the pictures of tokens that are cut`, async () => {
      const { report, rows } = await exported(exporter, picturedGroup(), { media: pictureBytes, maxTokens: 14 });
      if (!exporter.saysPictures) return;
      assert.equal(report.left_out.over_length, 1);
      if (exporter.extension === "jsonl") assert.deepEqual(rows.flatMap(picturesIn), [pictureSizes[0], pictureSizes[2]]);
    });

    test(`${exporter.name}: ends a row that is too long at an earlier call`, async () => {
      const [whole, cut] = [await exported(exporter, group()), await exported(exporter, group(), { maxTokens: 27 })];
      assert.equal(whole.report.left_out.over_length, undefined);
      assert.equal(cut.report.left_out.over_length, 1);
    });

    test(`${exporter.name}: refuses rows of a packed tree unless it can say them`, async () => {
      const packed = exported(exporter, group(), { strategy: "tree" });
      if (exporter.saysPackedRows) await packed;
      else await assert.rejects(packed, { code: "config_invalid", param: "select" });
    });
  }
}

/** The ids of a row or of a message, in order, under any name that a format has for them. */
const idsOf = (holder: Record<string, unknown>): number[] =>
  [
    ...["token_ids", "tokens", "input_ids", "model_input", "observation_tokens", "prompts", "responses"],
    ...["prompt_token_ids", "response_ids", "prompt_ids", "completion_ids"],
  ].flatMap((name) => (holder[name] ?? []) as number[]);

/** The length of each picture of a row. Throws if a picture does not stand at pads, or if a pad has no picture. */
function picturesIn(row: Record<string, unknown>): number[] {
  // A turn has the pictures of its whole prompt, so the last turn has all pictures.
  const turns = (row.triplets ?? []) as { prompt: { token_ids: number[] }; media?: unknown }[];
  const perTurn = turns.map(({ prompt, media }) => picturesIn({ ...prompt, media }));
  if (perTurn.length > 0) return perTurn.at(-1) ?? [];
  const holders = Array.isArray(row.message_log) ? (row.message_log as Record<string, unknown>[]) : [row];
  return holders.flatMap((holder) => {
    const ids = idsOf(holder);
    const media = (holder.media ?? []) as { start: number; length: number }[];
    for (const { start, length } of media) assert.deepEqual(ids.slice(start, start + length), new Array(length).fill(pad));
    const lengths = media.map(({ length }) => length);
    assert.equal(
      ids.filter((id) => id === pad).length,
      lengths.reduce((sum, length) => sum + length, 0),
    );
    return lengths;
  });
}

/** Where something is named like a reward and is 0. */
function zeroRewards(value: unknown, path = ""): string[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) =>
    /reward|score/.test(key) && inner === 0 ? [`${path}.${key}`] : zeroRewards(inner, `${path}.${key}`),
  );
}
