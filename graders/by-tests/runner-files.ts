/** The programs of graders/runners/ as a sandbox gets them: those of one language, with what they import. */
import { readFile } from "node:fs/promises";
import type { TreeFile } from "../../base/files/file-tree.ts";
import type { ReportParser } from "../parsers/report-parser.ts";

export type RunnerKit = {
  /** Its words before a program. */
  options: string[];
  /** What runs it where a command does not say. */
  interpreter: string;
  /** Loads the work where that runs apart. */
  workHost: string;
  /** How hidden tests are written into the runner's input. */
  encoding: "utf8" | "base64";
  /** Path of a program below the runner's folder. */
  pathOf(program: string): string;
  files(program: string): Promise<TreeFile[]>;
};

/** TypeScript in the source tree, JavaScript in the published one. */
const extension = import.meta.url.endsWith(".ts") ? ".ts" : ".js";

const nodeFiles = [
  ...["apart", "guard-framework", "last-test", "line-thread", "load-tests", "memory-files", "peer", "said-todo", "sealed-report"],
  ...["test-files", "values", "work-host"],
];

const node: RunnerKit = {
  options: [],
  interpreter: "node",
  workHost: "work-host",
  encoding: "utf8",
  pathOf: (program) => `${program}${extension}`,
  async files(program) {
    const files = await Promise.all([program, ...nodeFiles].map((name) => fileOf(`${name}${extension}`, `../runners/${name}${extension}`)));
    return [...files, { path: "package.json", content: Buffer.from('{"type":"module"}\n'), mode: 0o644 }];
  },
};

const pythonFiles = [
  ...[
    "__init__.py",
    "apart.py",
    "guard_framework.py",
    "is_below.py",
    "load_tests.py",
    "peer.py",
    "pytest.ini",
    "sealed_report.py",
    "stand_ins.py",
  ],
  ...["values.py", "work_host.py"],
];
/** A package, so that no module of the work has the name of one of ours. */
const pythonPackage = "alidade_tests";

const python: RunnerKit = {
  // Isolated: no variable and no file of the workdir has a say before the runner has read its key.
  options: ["-I"],
  interpreter: "python3",
  workHost: "work_host",
  encoding: "base64",
  pathOf: (program) => `${pythonPackage}/${program}.py`,
  files: (program) =>
    Promise.all([`${program}.py`, ...pythonFiles].map((name) => fileOf(`${pythonPackage}/${name}`, `../runners/python/${name}`))),
};

const kits: Record<NonNullable<ReportParser["language"]>, RunnerKit> = { node, python };

export function runnerKit({ language = "node" }: Pick<ReportParser, "language">): RunnerKit {
  return kits[language];
}

async function fileOf(path: string, source: string): Promise<TreeFile> {
  return { path, content: await readFile(new URL(source, import.meta.url)), mode: 0o644 };
}
