/** The files that steer a test framework: what a work changes in them is not graded with, unless a task says otherwise. */
import type { ReportParser } from "../report-parser.ts";

export const pythonSteering: readonly string[] = [
  ...["conftest.py", "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "tox.ini", "setup.cfg", "pyproject.toml"].map(anywhere),
  // Python runs these when it starts, and pytest loads the plug-ins that the last two name.
  ...["sitecustomize.py", "usercustomize.py", "*.pth", "*.egg-info/**", "*.dist-info/**"].map(anywhere),
];

export const jsSteering: readonly string[] = [
  ...["jest.config.*", "vitest.config.*", "vitest.workspace.*", "vite.config.*", ".mocharc.*", "babel.config.*", ".babelrc*"].map(anywhere),
  // The framework itself may lie there.
  anywhere("node_modules/**"),
];

/** What ctest reads where it is started: CMake writes the first and the last into its build folder. */
export const ctestSteering: readonly string[] = [
  "CTestTestfile.cmake",
  "CTestCustom.cmake",
  "CTestCustom.ctest",
  "DartConfiguration.tcl",
].map(anywhere);

/** Globs of what steers a parser's framework. `added`: the paths that the work added, from the workdir. */
export function steeringFiles({ steeredBy = [], modules = [] }: ReportParser, added: string[]): string[] {
  const taken = new Set(added.map((path) => path.split(/[./]/, 1)[0]));
  return [...steeredBy, ...modules.filter((name) => taken.has(name)).flatMap(standIns)];
}

/** A package shadows a module by its `__init__` alone: the other files of a folder such as `html/` are left to the work. */
function standIns(name: string): string[] {
  return [`${name}.py`, `${name}.so`, `${name}.*.so`, `${name}/__init__.*`];
}

function anywhere(name: string): string {
  return `**/${name}`;
}
