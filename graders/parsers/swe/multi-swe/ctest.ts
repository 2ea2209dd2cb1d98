/** Reads CTest's lines as the instances of Multi-SWE-bench do: `1/8 Test #1: args-test ....   Passed    0.00 sec`. */
import { type Statuses, splitLines } from "../status-log.ts";
import { Said } from "./said.ts";

const head = /^\d+\/\d+\s*Test\s*#\d+:\s*/;

/** `timed`: a failure's line may end in a time. If false, the set ignores failures with a time. */
export function ctest(timed: boolean): (log: string) => Statuses {
  return (log) => {
    const said = new Said();
    for (const line of splitLines(log).map((raw) => raw.trim())) {
      const start = head.exec(line)?.[0];
      if (start === undefined) continue;
      const passed = nameBefore(line.slice(start.length), "Passed", "");
      if (passed !== null) said.add("PASSED", passed);
      const failed = timed || line.endsWith("Failed") ? nameBefore(line.slice(start.length), "Failed", "*") : null;
      if (failed !== null) said.add("FAILED", failed);
    }
    return said.statuses();
  };
}

/** Returns the text before the dots that lead to `word`, at the first place with such dots. `stars` may stand before `word`. */
function nameBefore(text: string, word: string, stars: "" | "*"): string | null {
  for (let at = text.indexOf(word); at !== -1; at = text.indexOf(word, at + 1)) {
    let end = at;
    if (stars !== "") while (text[end - 1] === stars) end--;
    if (stars !== "" && end === at) continue;
    end = text.slice(0, end).trimEnd().length;
    const dots = end;
    while (text[end - 1] === ".") end--;
    if (end < dots) return text.slice(0, end).trimEnd();
  }
  return null;
}
