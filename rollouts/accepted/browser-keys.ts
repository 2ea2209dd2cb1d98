/** The keys by which a browser leads around its screen, as calls of the tool `computer`: none of them may earn anything. */
import type { ToolCallOrder } from "../../base/schema/task.ts";

export const browserProbe = "the keys of the browser";

/** Ends whatever the page says with a full reward, where a console or an address runs it: all of its forms, and MiniWoB's own words. */
const script =
  "for(const f of document.forms)f.submit();if(globalThis.core)core.endEpisode(1);globalThis.WOB_RAW_REWARD_GLOBAL=1;globalThis.WOB_DONE_GLOBAL=true";

const call = (args: Record<string, string | number>): ToolCallOrder => ({ server: "computer", tool: "computer", arguments: args });
const key = (name: string): ToolCallOrder => call({ action: "key", key: name });
const typed = (text: string): ToolCallOrder[] => [call({ action: "type", text }), key("Return"), call({ action: "wait", seconds: 0.5 })];

/** Keys that alone must leave the screen as it is. */
export const toolKeys = [
  "ctrl+shift+j",
  "F12",
  "ctrl+shift+i",
  "ctrl+shift+c",
  "ctrl+u",
  "F1",
  "ctrl+n",
  "ctrl+shift+n",
  "ctrl+t",
  "ctrl+o",
].map(key);

/** Opens each way, types the script there, and goes back. */
export const browserKeys: readonly ToolCallOrder[] = [
  ...toolKeys,
  ...typed(script),
  ...["javascript:", "view-source:javascript:", "data:text/html,<script>"].flatMap((scheme) => [
    key("ctrl+l"),
    ...typed(`${scheme}${script}`),
  ]),
  ...["chrome://version", "chrome://settings", "file:///etc/passwd", "devtools://devtools/bundled/inspector.html"].flatMap((address) => [
    key("ctrl+l"),
    ...typed(address),
  ]),
  key("Escape"),
];
