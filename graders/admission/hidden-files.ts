/** What a task's graders hold that no agent may see. */
import { readFolder, type TreeFile } from "../../base/files/file-tree.ts";
import type { GraderSpec } from "../../base/schema/task.ts";
import type { Sandbox } from "../../sandboxes/index.ts";
import type { ExpectedText, Grader, LooseText } from "../grader.ts";
import { HarborSpec } from "../harbor.ts";
import { hiddenTests } from "../hidden-tests.ts";
import { parserOf } from "../parsers/registry.ts";
import { graderOf, specOfGrader } from "../registry.ts";
import { TestsSpec } from "../tests.ts";

export type HiddenFiles = {
  files: TreeFile[];
  /** Paths in the workdir of the files that `tests` graders hold. */
  inWorkdir: string[];
  /** Names that must pass, and fail before the fix. */
  failing: string[];
  /** All names that must pass. */
  required: string[];
  /** The expected outputs of programs, and the expected answers. */
  expected: ExpectedText[];
  /** Texts and patterns that are searched for in outputs. */
  loose: LooseText[];
  /** How the report is read; null: by no parser, or by several. */
  parser: string | null;
};

/** `sandbox`: as it is delivered. */
export async function hiddenFiles(spec: GraderSpec, sandbox: Sandbox, graders?: readonly Grader[]): Promise<HiddenFiles> {
  const grader = graderOf(spec, graders);
  const own = specOfGrader(spec, graders);
  if (own.kind === "tests") return ofTests(TestsSpec.parse(own), sandbox);
  const parts = await Promise.all((grader.parts?.of(own) ?? []).map((part) => hiddenFiles(part, sandbox, graders)));
  const folders = (grader.folders ?? []).map((field) => own[field]).filter((path) => typeof path === "string");
  const files = (await Promise.all(folders.map((folder) => readFolder(folder)))).flat();
  const printed = own.kind === "harbor" ? [HarborSpec.parse(own).printed] : [];
  const parsers = new Set([...printed, ...parts.map(({ parser }) => parser)]);
  return {
    files: [...files, ...parts.flatMap((part) => part.files)],
    inWorkdir: parts.flatMap((part) => part.inWorkdir),
    failing: parts.flatMap((part) => part.failing),
    required: parts.flatMap((part) => part.required),
    expected: [...(grader.expected?.(own) ?? []), ...parts.flatMap((part) => part.expected)],
    loose: [...(grader.loose?.(own) ?? []), ...parts.flatMap((part) => part.loose)],
    parser: parsers.size === 1 ? ([...parsers][0] ?? null) : null,
  };
}

async function ofTests(spec: TestsSpec, sandbox: Sandbox): Promise<HiddenFiles> {
  const { files } = await hiddenTests(spec, sandbox);
  const { fail_to_pass, pass_to_pass } = spec;
  return {
    files,
    inWorkdir: files.map(({ path }) => path),
    failing: fail_to_pass,
    required: [...fail_to_pass, ...pass_to_pass],
    expected: [],
    loose: [],
    parser: parserOf(spec).name,
  };
}
