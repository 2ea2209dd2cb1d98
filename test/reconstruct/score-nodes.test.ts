/** What a teacher is asked of a tree, and what stands on its nodes afterwards. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Message } from "../../base/schema/message.ts";
import type { Trajectory } from "../../base/schema/trajectory.ts";
import { FlatRow, reconstruct, scoreNodes, selectRows, teacherLogprobs, teachingOf, withTeacher } from "../../reconstruct/index.ts";
import { assistant, LogBuilder, user } from "../fakes/records/log-builder.ts";
import { teacher } from "../fakes/records/taught.ts";

/** A logprob that tells the place and the token. */
const logprobOf = (id: number, at: number): number => -(at + id / 1_000_000) / 1_000;

function asking(asked: number[][] = [], maxTokens: number | null = null, readsImages = false) {
  return {
    maxTokens,
    readsImages,
    score: async (ids: number[]) => {
      asked.push(ids);
      return { logprobs: ids.map((id, at) => (at === 0 ? null : logprobOf(id, at))) };
    },
  };
}

function session(): Trajectory {
  const log = new LogBuilder();
  const first = log.call({ messages: [user("go")], says: assistant("right away") });
  const said = [user("go"), assistant("right away")];
  for (const next of ["left", "right"]) log.call({ messages: [...said, user(next)], parent: first, says: assistant(`going ${next}`) });
  return reconstruct(log.entries);
}

test("each path is asked once with its whole context, and each row has the scores at its own tokens", async () => {
  const trajectory = session();
  const asked: number[][] = [];
  const scored = withTeacher(trajectory, teacher, await scoreNodes(trajectory, asking(asked)));
  assert.equal(asked.length, 2);
  const rows = [...selectRows(scored).rows].map((row) => FlatRow.parse(row));
  assert.equal(rows.length, 2);
  for (const row of rows) {
    const sampled = row.segments.flatMap(({ kind, start, end }) => (kind === "sampled" ? [{ start, end }] : []));
    const isSampled = (at: number): boolean => sampled.some(({ start, end }) => at >= start && at < end);
    assert.deepEqual(
      row.teacher_logprobs,
      row.token_ids.map((id, at) => (isSampled(at) ? logprobOf(id, at) : null)),
    );
    assert.deepEqual(
      teacherLogprobs(row),
      row.token_ids.map((id, at) => (row.loss_mask[at] === 1 ? logprobOf(id, at) : 0)),
    );
  }
  const bare = [...selectRows(trajectory).rows];
  assert.deepEqual(
    rows.map(({ teacher_logprobs: _, ...row }) => row),
    bare,
    "nothing else of a row changes",
  );
  assert.equal(bare[0] && teacherLogprobs(bare[0]), null);
  const { sampled_tokens, scored_tokens, unscored } = teachingOf(scored);
  assert.deepEqual([scored_tokens, unscored], [sampled_tokens, {}]);
});

test("an earlier teacher's scores are gone where a later one scored nothing", async () => {
  const trajectory = session();
  const first = withTeacher(trajectory, teacher, await scoreNodes(trajectory, asking()));
  const second = withTeacher(first, { ...teacher, model: "other" }, new Map());
  assert.ok(second.nodes.every((node) => node.teacher === undefined));
  assert.equal(second.teacher?.model, "other");
});

test("tokens of another model, with strange ids, or behind a picture are not asked about and say why they are null", async () => {
  const picture: Message = { role: "user", parts: [{ type: "image", url: "data:image/png;base64,AA==" }] };
  const log = new LogBuilder();
  log.call({ messages: [user("go")], says: assistant("ok") });
  log.call({ messages: [user("judge")], says: assistant("fine") });
  log.call({ messages: [user("odd")], says: assistant("strange") });
  log.call({ messages: [picture], says: assistant("I see") });
  const trajectory = reconstruct(log.entries);
  const [, judged, odd] = trajectory.calls;
  assert.ok(judged && odd);
  judged.other_policy = true;
  for (const node of trajectory.nodes) if (node.call_id === odd.call_id && node.kind === "sampled") node.reason = "misaligned";
  const asked: number[][] = [];
  const scored = withTeacher(trajectory, teacher, await scoreNodes(trajectory, asking(asked)));
  assert.equal(asked.length, 1);
  assert.deepEqual(
    scored.nodes.flatMap(({ kind, teacher }) =>
      kind === "sampled" ? [[teacher?.reason, teacher?.logprobs.every((one) => one === null)]] : [],
    ),
    [
      [null, false],
      ["other_policy", true],
      ["misaligned", true],
      ["images", true],
    ],
  );
  assert.deepEqual(Object.keys(teachingOf(scored).unscored), ["other_policy", "misaligned", "images"]);
});

test("what does not fit the teacher is cut off before it is asked, and null with the reason", async () => {
  const trajectory = session();
  const asked: number[][] = [];
  const [first] = trajectory.nodes.filter(({ kind }) => kind === "sampled");
  const prompt = trajectory.calls[0]?.prompt_length ?? 0;
  const scores = await scoreNodes(trajectory, asking(asked, prompt + 1));
  assert.ok(asked.every(({ length }) => length === prompt + 1));
  assert.ok(first);
  const one = scores.get(first.node_id);
  assert.deepEqual(
    [one?.reason, one?.logprobs.map((logprob) => logprob === null)],
    ["over_context", first.token_ids.map((_, at) => at > 0)],
  );
});

test("what an engine says that is no logprob is no score", async () => {
  const trajectory = session();
  const score = async (ids: number[]) => ({ logprobs: ids.map((_, at) => (at % 2 === 0 ? Number.NaN : 3)) });
  for (const { logprobs, reason } of (await scoreNodes(trajectory, { score, readsImages: false, maxTokens: null })).values())
    assert.deepEqual([logprobs.every((one) => one === null), reason], [true, "no_logprob"]);
});
