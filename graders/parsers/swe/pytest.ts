/** Reads pytest's log as the SWE sets do: `STATUS name` of the short summary, and in some sets `name STATUS` of -v. */
import { pythonSteering } from "../steering/steering-files.ts";
import { linesOf, type Statuses, statuses, sweParser, wordsOf } from "./status-log.ts";

/** Such a line (`SKIPPED [2] file:line: why`) counts tests, and names none. */
const isFolded = (status: string, name: string): boolean => status === "SKIPPED" && /^\[\d+\]$/.test(name);

const begins = (line: string): boolean => statuses.some((status) => line.startsWith(status));

/** The second word is the name. So a parameter with a space is cut off there. */
function summaryRows(log: string, nameOf = (name: string): string => name): Statuses {
  const found: Statuses = new Map();
  for (const line of linesOf(log).filter(begins)) {
    const [status = "", name] = wordsOf(line.startsWith("FAILED") ? line.replaceAll(" - ", " ") : line);
    if (name !== undefined && !isFolded(status, name)) found.set(nameOf(name), status);
  }
  return found;
}

/** Keeps only the last part of a parameter that is a path, because its folder changes from run to run. */
export function withoutFolder(name: string): string {
  const [open, close] = [name.indexOf("["), name.lastIndexOf("]")];
  if (open === -1 || close < open) return name;
  const [test, parameter] = [name.slice(0, open), name.slice(open + 1, close)];
  const isPath = parameter.startsWith("/") && !parameter.startsWith("//") && !parameter.includes("*");
  return `${test}[${isPath ? `/${parameter.split("/").at(-1)}` : parameter}]`;
}

/** Removes colours and other control characters. All words except the status are the name. */
function wholeRows(log: string): Statuses {
  const found: Statuses = new Map();
  for (const raw of linesOf(log)) {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: the characters that go
    const line = raw.replace(/\[\d+m/g, "").replace(/[\x01-\x1f]/g, "");
    if (begins(line)) {
      const [status = "", ...name] = wordsOf(line.startsWith("FAILED") ? (line.split(" - ")[0] as string) : line);
      if (name[0] !== undefined && !isFolded(status, name[0])) found.set(name.join(" "), status);
    } else if (statuses.some((status) => line.endsWith(status))) {
      const words = wordsOf(line);
      if (words.length > 1) found.set(words.slice(0, -1).join(" "), words.at(-1) as string);
    }
  }
  return found;
}

function seabornRows(log: string): Statuses {
  const found: Statuses = new Map();
  for (const line of linesOf(log)) {
    const [first = "", second] = wordsOf(line);
    if (second === undefined) continue;
    if (line.startsWith("FAILED")) found.set(second, "FAILED");
    else if (line.includes(" PASSED ")) second === "PASSED" && found.set(first, "PASSED");
    else if (line.startsWith("PASSED")) found.set(second, "PASSED");
  }
  return found;
}

/** Reads only `name STATUS` of -v, as SWE-smith does. */
function verboseRows(log: string): Statuses {
  const found: Statuses = new Map();
  for (const line of linesOf(log)) {
    const [, name, status] = /^(\S+)\s+(FAILED|PASSED|SKIPPED|ERROR|XFAIL)/.exec(line) ?? [];
    if (name !== undefined && status !== undefined) found.set(name, status);
  }
  return found;
}

/** Reads the lines below the summary's heading, as R2E-Gym does. A name is the node id without its file. */
function shortNames(log: string): Statuses {
  const found: Statuses = new Map();
  for (const line of linesOf(log.split("short test summary info")[1] ?? "")) {
    const status = ["PASSED", "FAILED", "ERROR"].find((word) => line.includes(word));
    if (status === undefined) continue;
    const name = line.split("::").slice(1).join(".");
    found.set(status === "PASSED" ? name : (name.split(" - ")[0] as string), status);
  }
  return found;
}

const of = (name: string, title: string, read: (log: string) => Statuses) =>
  sweParser({ name, title: `SWE sets: ${title}`, steeredBy: pythonSteering, read });

const plain = ["", "_astroid", "_flask", "_marshmallow", "_pvlib", "_pyvista", "_sqlfluff", "_xarray"];
const options = ["_pydicom", "_requests", "_pylint"];
const whole = ["_astropy", "_scikit", "_sphinx"];
const nameOf = (suffix: string): string => `parse_log${suffix || "_pytest"}`;

export const swePytest = [
  ...plain.map((suffix) => of(nameOf(suffix), "pytest -rA, names up to a blank", summaryRows)),
  ...["_pytest_options", ...options].map((suffix) => of(nameOf(suffix), "the same, without folders in parameters", optionRows)),
  ...["_pytest_v2", ...whole].map((suffix) => of(nameOf(suffix), "pytest, whole names", wholeRows)),
  of("parse_log_seaborn", "pytest as seaborn runs it", seabornRows),
  of("parse_log_matplotlib", "pytest as matplotlib runs it", matplotlibRows),
  of("swesmith_pytest", "pytest -v as SWE-smith reads it", verboseRows),
  of("r2egym_pytest", "pytest -rA as R2E-Gym reads it", shortNames),
];

function optionRows(log: string): Statuses {
  return summaryRows(log, withoutFolder);
}

/** Python 3.11 writes these two in another way than earlier versions. */
function matplotlibRows(log: string): Statuses {
  return summaryRows(log.replaceAll("MouseButton.LEFT", "1").replaceAll("MouseButton.RIGHT", "3"));
}
