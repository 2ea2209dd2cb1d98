/** What `computer` and `computer_use_preview` may be asked to do: one action, as the model is shown it and as clients read it. */
import { z } from "zod";
import type { JsonObject } from "../../../base/schema/message.ts";
import { readJson } from "../../../base/schema/read-json.ts";
import { isObject, present } from "../edge.ts";

const number = z.number();
const place = { x: number, y: number };
const Keys = z.array(z.string());
const held = { keys: Keys.nullish() };

/** Loose: what else stands in an action is the client's to judge. */
const Action = z.discriminatedUnion("type", [
  z.looseObject({ type: z.literal("click"), button: z.enum(["left", "right", "wheel", "back", "forward"]), ...place, ...held }),
  z.looseObject({ type: z.literal("double_click"), ...place, ...held }),
  z.looseObject({ type: z.literal("drag"), path: z.array(z.looseObject(place)).min(1), ...held }),
  z.looseObject({ type: z.literal("keypress"), keys: Keys }),
  z.looseObject({ type: z.literal("move"), ...place, ...held }),
  z.looseObject({ type: z.literal("screenshot") }),
  z.looseObject({ type: z.literal("scroll"), ...place, scroll_x: number, scroll_y: number, ...held }),
  z.looseObject({ type: z.literal("type"), text: z.string() }),
  z.looseObject({ type: z.literal("wait") }),
]);

const coordinate = { type: "integer" };

/** JSON Schema properties of one action. Engines' grammars know plain objects best, so it is one object for all kinds. */
export const actionProperties: JsonObject = {
  type: {
    type: "string",
    enum: Action.options.map((option) => option.shape.type.value),
    description: "keypress presses `keys` together, type writes `text`, wait lets the screen settle, screenshot only looks.",
  },
  x: { ...coordinate, description: "click, double_click, move, scroll: pixels from the left edge of the screen." },
  y: { ...coordinate, description: "click, double_click, move, scroll: pixels from the top edge of the screen." },
  button: { type: "string", enum: ["left", "right", "wheel", "back", "forward"], description: "click: the button of the mouse." },
  path: {
    type: "array",
    items: { type: "object", properties: { x: coordinate, y: coordinate }, required: ["x", "y"] },
    description: "drag: the places that the mouse goes through.",
  },
  scroll_x: { ...coordinate, description: "scroll: pixels to the right." },
  scroll_y: { ...coordinate, description: "scroll: pixels down." },
  text: { type: "string", description: "type: the text." },
  keys: { type: "array", items: { type: "string" }, description: "keypress: the keys. Actions of the mouse: keys to hold meanwhile." },
};

/** Returns null for an unknown action. The value may hold numbers in their written form, so its JSON text is what is checked. */
export function actionToWire(value: unknown): JsonObject | null {
  if (!isObject(value) || !Action.safeParse(readJson(JSON.stringify(value))).success) return null;
  // Clients require `keys` in a double click.
  return value.type === "double_click" ? { keys: null, ...value } : value;
}

/** Without what the form added. */
export function actionFromWire(action: JsonObject): JsonObject {
  return present(action);
}
