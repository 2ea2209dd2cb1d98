/** A group of two rollouts with pictures: the first sees two, one after the other; the second sees one. */
import type { Media } from "../../../base/media/media.ts";
import { toStoredPicture } from "../../../base/media/stored-picture.ts";
import type { Message } from "../../../base/schema/message.ts";
import type { Trajectory } from "../../../base/schema/trajectory.ts";
import { reconstruct } from "../../../reconstruct/index.ts";
import { assistant, endOfTurn, LogBuilder } from "./log-builder.ts";
import { pngUrl } from "./png.ts";

/** The id of a pad; no text has it. */
export const pad = 7;
const frame = { begin: 5, end: 6 };

/** Pads of each picture, in the order of the rows. */
export const pictureSizes = [3, 2, 3] as const;

const colours = { red: [200, 0, 0], green: [0, 200, 0] } as const;
const stored = Object.fromEntries(
  Object.entries(colours).map(([name, colour]) => {
    const picture = toStoredPicture({ type: "image", url: pngUrl(8, 8, colour) });
    if (picture === null) throw new Error("a PNG is no picture");
    return [name, picture];
  }),
);

export const pictureBytes: Pick<Media, "read"> = {
  read: (sha256) => Object.values(stored).find(({ part }) => part.sha256 === sha256)?.bytes ?? Buffer.alloc(0),
};

export function picturedGroup(): Trajectory[] {
  const vocabulary = new Map<string, number>();
  const first = new LogBuilder({}, vocabulary);
  const seen = look(first, { prompt: [], media: [], messages: [] }, "red", 3);
  const fine = assistant("fine");
  first.call({ ...seen, says: fine });
  const later = { ...seen, prompt: [...seen.prompt, ...first.said(fine)], messages: [...seen.messages, fine] };
  first.call({ ...look(first, later, "green", 2), says: assistant("done") });

  const second = new LogBuilder({ rollout_id: "roll2", sample_index: 1 }, vocabulary);
  const [opened] = second.entries;
  if (opened?.type === "opened") opened.session_id = "sesother";
  second.call({ ...look(second, { prompt: [], media: [], messages: [] }, "red", 3), says: assistant("no") });

  const facts = { status: "graded", group: { size: 2 } } as const;
  return [reconstruct(first.entries, { ...facts, reward: 1 }), reconstruct(second.entries, { ...facts, reward: 0 })];
}

type Seen = { prompt: number[]; media: { sha256: string; start: number; length: number }[]; messages: Message[] };

function look(log: LogBuilder, { prompt, media, messages }: Seen, name: string, length: number): Seen {
  const picture = stored[name];
  if (picture === undefined) throw new Error(`no picture is ${name}`);
  const opening = [...prompt, ...log.tokens("<user> look "), frame.begin];
  const pads = new Array<number>(length).fill(pad);
  return {
    prompt: [...opening, ...pads, frame.end, endOfTurn, ...log.tokens("<assistant> ")],
    media: [...media, { sha256: picture.part.sha256, start: opening.length, length }],
    messages: [...messages, { role: "user", parts: [{ type: "text", text: "look" }, picture.part] }],
  };
}
