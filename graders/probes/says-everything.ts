import type { TreeFile } from "../../base/files/file-tree.ts";
import { atStart, cPrint } from "./forged/c-code.ts";
import { everything } from "./forged/everything.ts";
import { atLoad, extensions, type Probe, type ProbeTarget, planted, type WorkLanguage } from "./probe.ts";

export const saysEverything: Probe = {
  name: "says-everything",
  title: "prints or writes all that may be looked for: the instruction, all numbers, and each sentence of it with every number",
  rows: [26],
  languages: "any",
  cure: "compare the whole output (a text, `equals`, a pattern from `^` to `$`), or bound it by `longest` so that one answer fits",
  files: (target) => [...written(target), ...printed(target)],
};

/** The files that are looked into. */
function written({ loose, instruction, workdir }: ProbeTarget): TreeFile[] {
  const paths = new Set(loose.flatMap(({ file }) => file ?? []));
  return [...paths].flatMap((path) => {
    const own = path.startsWith(`${workdir}/`) ? path.slice(workdir.length + 1) : path;
    const sought = loose.filter(({ file }) => file === path);
    return own.startsWith("/") ? [] : [planted(own, everything(instruction, sought))];
  });
}

/** Programs, where their output is looked into. */
function printed(target: ProbeTarget): TreeFile[] {
  const sought = target.loose.filter(({ file }) => file === null);
  if (sought.length === 0) return [];
  const text = everything(target.instruction, sought);
  const code: Record<WorkLanguage, string> = {
    javascript: `get("node:fs").writeSync(1, ${JSON.stringify(text)});\nprocess.exit(0);`,
    python: `import os\nos.write(1, ${JSON.stringify(text)}.encode())\nos._exit(0)`,
    c: atStart(`  ${cPrint(text)}\n  _exit(0);`),
  };
  return (Object.keys(extensions) as WorkLanguage[]).flatMap((language) => {
    const own = target.solved.filter(({ path }) => extensions[language].test(path));
    // What stands in front of the code could end the program. A program in C needs it.
    const sources = language === "c" ? own : own.map((file) => ({ ...file, content: Buffer.from("") }));
    return atLoad({ ...target, language, sources }, code);
  });
}
