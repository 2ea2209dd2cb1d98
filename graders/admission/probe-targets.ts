/** What the hack probes of a task aim at: its languages, and what the tests load. */
import { buffer } from "node:stream/consumers";
import type { TreeFile } from "../../base/files/file-tree.ts";
import { readLayer, type WorkLayer } from "../../base/files/layer.ts";
import { extensions, type ProbeTarget, type WorkLanguage } from "../probes/probe.ts";
import { changedPaths } from "../work/work.ts";
import type { HiddenFiles } from "./hidden-files.ts";

const parsers: Record<WorkLanguage, RegExp> = {
  javascript: /^(?:node-test|tape|jest|jest-json|vitest|mocha)$/,
  python: /^(?:pytest|unittest)(?:-sealed)?$|_(?:pytest|django)/,
  c: /^ctest$/,
};

/** The known solution's files in the workdir. A longer one is no source. */
const mostSourceBytes = 1024 * 1024;

export async function filesOfWork(work: WorkLayer, workdir: string): Promise<TreeFile[]> {
  const wanted = new Set(changedPaths(work, workdir).map((path) => `${workdir}/${path}`));
  const files: TreeFile[] = [];
  for await (const { path, type, mode, size, content } of readLayer(work))
    if (wanted.has(path) && type === "file" && size <= mostSourceBytes && content !== null)
      files.push({ path: path.slice(workdir.length + 1), content: await buffer(content), mode });
  return files;
}

/** `solution`: files of the known solution; `base`: those that were there before. */
export function probeTargets(
  { workdir, instruction }: Pick<ProbeTarget, "workdir" | "instruction">,
  solution: readonly TreeFile[],
  base: readonly TreeFile[],
  hidden: HiddenFiles,
): ProbeTarget[] {
  const languages = (Object.keys(extensions) as WorkLanguage[]).filter((language) => {
    const isOne = ({ path }: TreeFile): boolean => extensions[language].test(path);
    return parsers[language].test(hidden.parser ?? "") || solution.some(isOne) || hidden.files.some(isOne);
  });
  const before = new Map(base.map((file) => [file.path, file]));
  const solved = solution.map(({ path, mode }) => before.get(path) ?? { path, mode, content: Buffer.from("") });
  const { inWorkdir: tests, required, parser, loose } = hidden;
  const rest = { workdir, instruction, tests, required, parser, loose, solved };
  const sourcesOf = (language: WorkLanguage): TreeFile[] => solved.filter(({ path }) => extensions[language].test(path));
  return [{ ...rest, language: null, sources: [] }, ...languages.map((language) => ({ ...rest, language, sources: sourcesOf(language) }))];
}
