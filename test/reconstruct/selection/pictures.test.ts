import assert from "node:assert/strict";
import { test } from "node:test";
import { toStoredPicture } from "../../../base/media/stored-picture.ts";
import type { Message } from "../../../base/schema/message.ts";
import { reconstruct, selectRows } from "../../../reconstruct/index.ts";
import { assistant, endOfTurn, LogBuilder, user } from "../../fakes/records/log-builder.ts";
import { pad } from "../../fakes/records/pictured-group.ts";
import { pngUrl } from "../../fakes/records/png.ts";

type Colour = readonly [number, number, number];
const [red, green]: [Colour, Colour] = [
  [200, 0, 0],
  [0, 200, 0],
];

function shown(colour: Colour) {
  return toStoredPicture({ type: "image", url: pngUrl(8, 8, colour) })?.part ?? assert.fail("a PNG is no picture");
}

function look(colour: Colour): Message {
  return { role: "user", parts: [shown(colour)] };
}

/**
 * Three calls: a first answer, an answer to a red picture, and one more turn. The third request has the first answer in other tokens
 * and the picture `later` in the place of the red one. So its tokens differ from the second prompt before the picture. `places`: the
 * engine told the picture's place in the second prompt.
 */
function retokenised(later: Colour, places = true) {
  const log = new LogBuilder();
  const open = user("begin");
  const first = assistant("hello");
  const one = log.call({ messages: [open], says: first });
  const opening = [...log.prompt([open]), ...log.said(first)];
  const prompt = (before: number[], more: Message[] = []) => [
    ...before,
    ...log.tokens("<user> "),
    ...[pad, pad, pad, endOfTurn],
    ...more.flatMap((message) => log.render(message)),
    ...log.tokens("<assistant> "),
  ];
  const place = (before: number[], colour: Colour) => ({ sha256: shown(colour).sha256, start: before.length + 1, length: 3 });
  const said = assistant("I see");
  const two = log.call({
    ...{ messages: [open, first, look(red)], prompt: prompt(opening), says: said, parent: one },
    ...(places && { media: [place(opening, red)] }),
  });
  // "hello " in two tokens.
  const anew = [...log.prompt([open]), ...log.tokens("hel lo "), endOfTurn];
  const go = user("go on");
  log.call({
    ...{ messages: [open, first, look(later), said, go], prompt: prompt(anew, [said, go]), says: assistant("done"), parent: two },
    media: [place(anew, later)],
    decoded: { parent_call_id: two, same_text: true, position: log.prompt([open]).length },
  });
  return reconstruct(log.entries, { status: "graded", reward: 1 });
}

/** The pictures before each trained call, in each row that trains it. */
function seenBy(trajectory: ReturnType<typeof retokenised>) {
  const rows = [...selectRows(trajectory, { strategy: "tolerant", readsImages: true }).rows];
  return trajectory.calls.map(({ call_id }) =>
    rows.flatMap(({ segments, media = [] }) =>
      segments
        .filter((segment) => segment.call_id === call_id && segment.trainable)
        .map(({ start }) => media.filter((picture) => picture.start < start).map(({ sha256 }) => sha256)),
    ),
  );
}

test("a turn in other tokens is joined where its pictures are the same, and begins a row where one is another", () => {
  const [same, other] = [retokenised(red), retokenised(green)];
  assert.equal(same.calls[2]?.match, "same_text");
  assert.equal(other.calls[2]?.match, "diverged");
  const [r, g] = [shown(red).sha256, shown(green).sha256];
  assert.deepEqual(seenBy(same), [[[]], [[r]], [[r]]]);
  assert.deepEqual(seenBy(other), [[[]], [[r]], [[g]]]);
});

test("a turn in other tokens is not joined to one whose pictures have no place", () => {
  const unplaced = retokenised(red, false);
  assert.equal(unplaced.calls[2]?.match, "unknown");
  assert.deepEqual(seenBy(unplaced).at(-1), [[shown(red).sha256]]);
});
