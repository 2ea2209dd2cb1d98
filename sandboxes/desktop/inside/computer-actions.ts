/** Does one action of the tool `computer` on the screen. Throws a sentence for the model where the arguments are wrong. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Keyboard } from "./keyboard.ts";
import { fake, type XClient } from "./x-client.ts";

export type Desktop = { client: XClient; keyboard: Keyboard; width: number; height: number };

type Point = { x: number; y: number };

const buttons = { left: 1, middle: 2, right: 3 } as const;
const wheel = { up: 4, down: 5, left: 6, right: 7 } as const;

/** A drag is seen as one only if the pointer moves between. */
const dragSteps = 10;
const dragStepMs = 8;
/** More than a page of text, and typed within a second. */
const longestText = 4_000;
const longestWaitSeconds = 10;
const mostNotches = 50;

export const actions = ["screenshot", "move", "click", "double_click", "drag", "scroll", "type", "key", "wait"] as const;
type ScreenAction = (typeof actions)[number];

/** The tool as `tools/list` says it. */
export function computerTool({ width, height }: Pick<Desktop, "width" | "height">): object {
  const x = { type: "integer", minimum: 0, maximum: width - 1 };
  const y = { type: "integer", minimum: 0, maximum: height - 1 };
  return {
    name: "computer",
    description:
      `Looks at a screen of ${width}x${height} pixels and acts on it. Each action answers with a picture of the screen after it, ` +
      "in the same size. Coordinates are pixels of that picture; 0, 0 is the upper left corner.",
    inputSchema: {
      type: "object",
      properties: {
        action: { type: "string", enum: actions },
        x: { ...x, description: "of move, click, double_click, drag (where it begins) and scroll" },
        y: { ...y, description: "as x" },
        to_x: { ...x, description: "where a drag ends" },
        to_y: { ...y, description: "where a drag ends" },
        button: { type: "string", enum: Object.keys(buttons), description: "of click; left out: left" },
        direction: { type: "string", enum: Object.keys(wheel), description: "of scroll; left out: down" },
        amount: { type: "integer", minimum: 1, maximum: mostNotches, description: "notches of scroll; left out: 3" },
        text: { type: "string", maxLength: longestText, description: "of type" },
        key: { type: "string", description: "of key, as in Return or ctrl+a" },
        seconds: { type: "number", minimum: 0, maximum: longestWaitSeconds, description: "of wait; left out: 1" },
      },
      required: ["action"],
      additionalProperties: false,
    },
  };
}

export async function act(desktop: Desktop, args: Record<string, unknown>): Promise<void> {
  const { client, keyboard } = desktop;
  const action = oneOf("action", args.action, actions) as ScreenAction;
  if (action === "screenshot") return;
  if (action === "wait") return void (await sleep(numberIn("seconds", args.seconds ?? 1, longestWaitSeconds) * 1000));
  if (action === "type") return keyboard.type(text("text", args.text, longestText));
  if (action === "key") return keyboard.press(text("key", args.key, 100));
  const at = pointIn(desktop, args.x, args.y, ["x", "y"]);
  const to = action === "drag" ? pointIn(desktop, args.to_x, args.to_y, ["to_x", "to_y"]) : at;
  const button = buttons[oneOf("button", args.button ?? "left", Object.keys(buttons)) as keyof typeof buttons];
  const notch = wheel[oneOf("direction", args.direction ?? "down", Object.keys(wheel)) as keyof typeof wheel];
  const amount = Math.ceil(numberIn("amount", args.amount ?? 3, mostNotches));
  client.send(fake.motion, 0, at);
  if (action === "click") press(client, button);
  if (action === "double_click") for (const each of [button, button]) press(client, each);
  if (action === "scroll") for (let done = 0; done < amount; done++) press(client, notch);
  if (action === "drag") await drag(client, button, at, to);
  await client.flush();
}

function press(client: XClient, button: number): void {
  client.send(fake.buttonDown, button);
  client.send(fake.buttonUp, button);
}

async function drag(client: XClient, button: number, from: Point, to: Point): Promise<void> {
  client.send(fake.buttonDown, button);
  for (let step = 1; step <= dragSteps; step++) {
    await sleep(dragStepMs);
    const along = (a: number, b: number): number => Math.round(a + ((b - a) * step) / dragSteps);
    client.send(fake.motion, 0, { x: along(from.x, to.x), y: along(from.y, to.y) });
  }
  await sleep(dragStepMs);
  client.send(fake.buttonUp, button);
}

function oneOf(field: string, value: unknown, known: readonly string[]): string {
  if (typeof value === "string" && known.includes(value)) return value;
  throw new Error(`${field} is ${shown(value)}: use one of ${known.join(", ")}`);
}

function text(field: string, value: unknown, longest: number): string {
  if (typeof value === "string" && value !== "" && value.length <= longest) return value;
  throw new Error(`${field} is ${shown(value)}: give a text of 1 to ${longest} characters`);
}

function numberIn(field: string, value: unknown, most: number): number {
  if (typeof value === "number" && value >= 0 && value <= most) return value;
  throw new Error(`${field} is ${shown(value)}: give a number from 0 to ${most}`);
}

/** A point outside is refused and not moved to the edge: a click there would mean something else. */
function pointIn({ width, height }: Desktop, x: unknown, y: unknown, [xName, yName]: [string, string]): Point {
  const inside = (value: unknown, size: number): value is number =>
    Number.isInteger(value) && (value as number) >= 0 && (value as number) < size;
  if (inside(x, width) && inside(y, height)) return { x, y };
  throw new Error(
    `${xName}, ${yName} is ${shown(x)}, ${shown(y)}: give whole numbers inside the screen, which has ${width}x${height} pixels`,
  );
}

function shown(value: unknown): string {
  return value === undefined ? "missing" : JSON.stringify(value).slice(0, 100);
}
