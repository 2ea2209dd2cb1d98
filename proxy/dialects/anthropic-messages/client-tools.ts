/**
 * Tools that the client runs and that the API knows by a dated type: their schema is known to the vendor's own models only.
 * Here each is a function with that schema, so that any model can call it. On this wire its calls need no other form: they
 * are `tool_use` blocks under the tool's name, as in the vendor's API.
 */
import { z } from "zod";
import type { JsonObject } from "../../../base/schema/message.ts";
import { checked } from "../edge.ts";

export type ClientTool = { name: string; description: string; input_schema: JsonObject };

const text = { type: "string" };
const count = { type: "integer" };

function described(schema: JsonObject, description: string): JsonObject {
  return { ...schema, description };
}

function oneOf(values: readonly string[], description?: string): JsonObject {
  return { ...text, enum: values, ...(description !== undefined && { description }) };
}

function list(length: number, description: string): JsonObject {
  return { type: "array", items: count, minItems: length, maxItems: length, description };
}

function schema(properties: JsonObject, required: readonly string[] = []): JsonObject {
  return { type: "object", properties, required };
}

const bash: ClientTool = {
  name: "bash",
  description: "Runs a command in a bash session that stays open between calls, and returns what it printed.",
  input_schema: schema({
    command: described(text, "The command to run. Leave it out only to restart."),
    restart: { type: "boolean", description: "true: starts a new session instead of running a command." },
  }),
};

const path = described(text, "Absolute path of the file or folder.");
const insertLine = described(count, "insert: the line after which the text goes; 0 is the start of the file.");
const viewRange = list(2, "view: the first and last line to show, counted from 1; a last line of -1 is the end of the file.");

/** `inserted`: the field with the text of `insert`. `canUndo`: the last edit of a file can be taken back. */
function textEditor(name: string, { inserted, canUndo }: { inserted: "new_str" | "insert_text"; canUndo: boolean }): ClientTool {
  const insertsNewText = inserted === "new_str";
  return {
    name,
    description: "Shows, creates and edits text files.",
    input_schema: schema(
      {
        command: oneOf(["view", "create", "str_replace", "insert", ...(canUndo ? ["undo_edit"] : [])]),
        path,
        view_range: viewRange,
        file_text: described(text, "create: the text of the new file."),
        old_str: described(text, "str_replace: the text to replace; it must stand in the file exactly once."),
        new_str: described(text, `str_replace: what replaces it.${insertsNewText ? " insert: the text to insert." : ""}`),
        insert_line: insertLine,
        ...(!insertsNewText && { insert_text: described(text, "insert: the text to insert.") }),
      },
      ["command", "path"],
    ),
  };
}

const memory: ClientTool = {
  name: "memory",
  description: "Keeps notes in files below /memories, which are still there in later conversations.",
  input_schema: schema(
    {
      command: oneOf(["view", "create", "str_replace", "insert", "delete", "rename"]),
      path: described(text, "The file or folder, below /memories; for all commands but rename."),
      view_range: viewRange,
      file_text: described(text, "create: the text of the new file."),
      old_str: described(text, "str_replace: the text to replace."),
      new_str: described(text, "str_replace: what replaces it."),
      insert_line: insertLine,
      insert_text: described(text, "insert: the text to insert."),
      old_path: described(text, "rename: the path so far."),
      new_path: described(text, "rename: the new path."),
    },
    ["command"],
  ),
};

const firstActions = [
  ...["screenshot", "cursor_position", "mouse_move", "left_click", "left_click_drag", "right_click", "middle_click", "double_click"],
  ...["key", "type"],
];
const laterActions = ["triple_click", "left_mouse_down", "left_mouse_up", "scroll", "hold_key", "wait"];

const Display = z.looseObject({
  display_width_px: z.number().int().positive(),
  display_height_px: z.number().int().positive(),
  enable_zoom: z.boolean().nullish(),
});

/** `generation`: 1 had clicks and keys, 2 added wheel, held keys and waiting, 3 can show a part of the screen. */
function computer(generation: 1 | 2 | 3) {
  return (sent: unknown, at: string): ClientTool => {
    const { display_width_px: width, display_height_px: height, enable_zoom } = checked(Display, sent, at);
    const zooms = generation === 3 && enable_zoom === true;
    return {
      name: "computer",
      description: `Controls a screen of ${width}x${height} pixels by mouse and keyboard. Coordinates are pixels from the top left corner. Every action answers with a picture of the screen.`,
      input_schema: schema(
        {
          action: oneOf([...firstActions, ...(generation > 1 ? laterActions : []), ...(zooms ? ["zoom"] : [])]),
          coordinate: list(2, "x and y of the action; for left_click_drag, its end."),
          text: described(
            text,
            `type: the text.${generation > 1 ? " key, hold_key" : " key"}: the keys in xdotool's names, such as ctrl+s or Return.${generation > 1 ? " Clicks and scroll: a modifier key to hold." : ""}`,
          ),
          ...(generation > 1 && {
            start_coordinate: list(2, "left_click_drag: x and y of its start."),
            scroll_direction: oneOf(["up", "down", "left", "right"], "scroll: where to."),
            scroll_amount: described(count, "scroll: clicks of the wheel."),
            duration: { type: "number", description: "hold_key, wait: seconds." },
          }),
          ...(zooms && { region: list(4, "zoom: left, top, right and bottom of the part to show.") }),
        },
        ["action"],
      ),
    };
  };
}

const clientTools: ReadonlyMap<string, (sent: unknown, at: string) => ClientTool> = new Map([
  ["bash_20241022", () => bash],
  ["bash_20250124", () => bash],
  ["text_editor_20241022", () => textEditor("str_replace_editor", { inserted: "new_str", canUndo: true })],
  ["text_editor_20250124", () => textEditor("str_replace_editor", { inserted: "new_str", canUndo: true })],
  ["text_editor_20250429", () => textEditor("str_replace_based_edit_tool", { inserted: "insert_text", canUndo: false })],
  ["text_editor_20250728", () => textEditor("str_replace_based_edit_tool", { inserted: "insert_text", canUndo: false })],
  ["computer_20241022", computer(1)],
  ["computer_20250124", computer(2)],
  ["computer_20251124", computer(3)],
  ["memory_20250818", () => memory],
]);

/** Null where no tool of that type is known here. */
export function clientTool(type: string, sent: unknown, at: string): ClientTool | null {
  return clientTools.get(type)?.(sent, at) ?? null;
}
