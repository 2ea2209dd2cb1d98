/**
 * `computerUse`: a set of functions that the client runs and that Google's own models know without a declaration. Here they are
 * declared, so that any model can call them; their calls need no other form on this wire. Which set a client knows goes by
 * the model that it asks for.
 */
import { z } from "zod";
import type { JsonObject, Tool } from "../../../base/schema/message.ts";
import { checked, invalid } from "../edge.ts";
import { unknownFields } from "../left-out/omitted.ts";

const ComputerUse = z.looseObject({
  environment: z.string().nullish(),
  excludedPredefinedFunctions: z.array(z.string()).nullish(),
});
const read = new Set(Object.keys(ComputerUse.shape));

/** Models of the first set of functions; all others have the second. */
const firstModels: ReadonlySet<string> = new Set([
  "gemini-2.5-computer-use-preview-10-2025",
  "gemini-3-flash-preview",
  "gemini-3.1-pro-preview",
]);

const text = { type: "string" };
const flag = { type: "boolean" };

/** On this wire a screen has a thousand steps each way, whatever its size. */
function step(description: string): JsonObject {
  return { type: "integer", minimum: 0, maximum: 999, description: `${description}, in thousandths of the screen.` };
}

const place = { x: step("From the left edge"), y: step("From the top edge") };
const direction = { ...text, enum: ["up", "down", "left", "right"] };
const magnitude = { ...step("How far"), description: "How far, in thousandths of the screen; 800 where it is left out." };
const target = { destination_x: step("The end, from the left edge"), destination_y: step("The end, from the top edge") };
const key = { key: { ...text, description: "The key, such as enter or control." } };

type PredefinedFunction = { description: string; properties?: JsonObject; optional?: readonly string[] };

/** In both sets. */
const shared = {
  drag_and_drop: { description: "Drags from one place of the screen to another.", properties: { ...place, ...target } },
  go_back: { description: "Goes back to the page before." },
  go_forward: { description: "Goes forward again to the page after." },
  navigate: { description: "Opens a URL.", properties: { url: text } },
} satisfies Record<string, PredefinedFunction>;

const first: Record<string, PredefinedFunction> = {
  open_web_browser: { description: "Opens the browser." },
  click_at: { description: "Clicks at a place of the screen.", properties: place },
  hover_at: { description: "Moves the mouse to a place of the screen.", properties: place },
  type_text_at: {
    description: "Clicks at a place of the screen and writes a text there.",
    properties: {
      ...place,
      text,
      press_enter: { ...flag, description: "Presses enter behind the text." },
      clear_before_typing: { ...flag, description: "Deletes what stands there before; true where it is left out." },
    },
    optional: ["press_enter", "clear_before_typing"],
  },
  scroll_document: { description: "Scrolls the page.", properties: { direction } },
  scroll_at: { description: "Scrolls at a place of the screen.", properties: { ...place, direction, magnitude }, optional: ["magnitude"] },
  wait_5_seconds: { description: "Waits for five seconds." },
  search: { description: "Opens the page of a search engine." },
  key_combination: {
    description: "Presses keys together.",
    properties: { keys: { ...text, description: "Such as control+c, or enter." } },
  },
  ...shared,
};

const second: Record<string, PredefinedFunction> = {
  click: { description: "Clicks at a place of the screen.", properties: place },
  double_click: { description: "Clicks twice at a place of the screen.", properties: place },
  triple_click: { description: "Clicks three times at a place of the screen.", properties: place },
  middle_click: { description: "Clicks with the middle button at a place of the screen.", properties: place },
  right_click: { description: "Clicks with the right button at a place of the screen.", properties: place },
  mouse_down: { description: "Presses the button of the mouse at a place of the screen, and holds it.", properties: place },
  mouse_up: { description: "Releases the button of the mouse at a place of the screen.", properties: place },
  move: { description: "Moves the mouse to a place of the screen.", properties: place },
  type: {
    description: "Writes a text where the cursor is.",
    properties: { text, press_enter: { ...flag, description: "Presses enter behind the text." } },
    optional: ["press_enter"],
  },
  wait: { description: "Waits.", properties: { seconds: { type: "integer", minimum: 1 } } },
  press_key: { description: "Presses a key.", properties: key },
  key_down: { description: "Presses a key and holds it.", properties: key },
  key_up: { description: "Releases a key.", properties: key },
  hotkey: {
    description: "Presses keys together.",
    properties: { keys: { type: "array", items: text, description: 'Such as ["control", "c"].' } },
  },
  take_screenshot: { description: "Returns a picture of the screen." },
  scroll: { description: "Scrolls at a place of the screen.", properties: { ...place, direction, magnitude }, optional: ["magnitude"] },
  ...shared,
};

/** Those of phones and desktops are described at Google for its own clients, and differ from a browser's. */
const browser: ReadonlySet<string | null | undefined> = new Set([undefined, null, "ENVIRONMENT_UNSPECIFIED", "ENVIRONMENT_BROWSER"]);

/** `sent`: with its keys in camel case. `fields`: what it asks for beside the functions, which no engine does. */
export function computerFunctions(sent: JsonObject, model: string, at: string): { tools: Tool[]; fields: string[] } {
  const { environment, excludedPredefinedFunctions: excluded } = checked(ComputerUse, sent, at);
  if (!browser.has(environment))
    throw invalid(
      `${at}.environment`,
      `the functions of ${environment} are not known here, and your client runs them: declare them in functionDeclarations`,
    );
  const actions = Object.entries(firstModels.has(model) ? first : second).filter(([name]) => !excluded?.includes(name));
  return { tools: actions.map(([name, action]) => toolOf(name, action)), fields: unknownFields(sent, read, at) };
}

function toolOf(name: string, { description, properties = {}, optional = [] }: PredefinedFunction): Tool {
  const required = Object.keys(properties).filter((property) => !optional.includes(property));
  return { name, description, parameters: { type: "object", properties, required }, kind: "function" };
}
