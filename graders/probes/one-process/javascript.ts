/**
 * Code in JavaScript that earns from inside the process of the tests. Each text stands at the end of the work's own module,
 * with `get` for Node's own modules, and takes what it finds: node:test or tape, by a runner of ours or by another one.
 */
import { forgedLines } from "../forged/forged-lines.ts";
import type { ProbeTarget } from "../probe.ts";

/** `ask(method, params)`: a question to the debugger of its own thread, which answers at once. */
const inspector = `const session = new (get("node:inspector").Session)();
session.connect();
const ask = (method, params = {}) => {
  let said = {};
  session.post(method, params, (error, result) => { said = error ? {} : result; });
  return said;
};`;

/** A failed test that is to do counts as passed. */
export function raiseOutcomes(): string {
  return `get("node:test").beforeEach((t) => t.todo("to fail"));`;
}

/** The debugger gives the tests' functions another text before they are called. */
export function swapCode({ tests }: ProbeTarget): string {
  return `${inspector}
const scripts = [];
session.on("Debugger.scriptParsed", ({ params }) => scripts.push(params));
ask("Debugger.enable");
for (const { scriptId, url } of scripts.filter(({ url }) => ${JSON.stringify(tests)}.some((path) => url.endsWith("/" + path)))) {
  const { scriptSource = "" } = ask("Debugger.getScriptSource", { scriptId });
  const without = scriptSource.replace(/\\b(?:assert[\\w.]*|t\\.(?!end\\b|plan\\b|test\\b)\\w+)\\(/g, "void (");
  ask("Debugger.setScriptSource", { scriptId, scriptSource: without });
}
ask("Debugger.disable");`;
}

/** The debugger knows all objects: the runner's report among them is told of each test and ended. */
export function findReport({ required }: ProbeTarget): string {
  return `${inspector}
const prototypeObjectId = ask("Runtime.evaluate", { expression: "Object.prototype" }).result?.objectId;
const { objects } = ask("Runtime.queryObjects", { prototypeObjectId });
const tell = (names) => function () {
  for (const one of this)
    if (typeof one.test === "function" && typeof one.complete === "function") {
      for (const name of names) one.test(name, "passed");
      one.complete();
    }
};
const functionDeclaration = "function () { (" + tell + ")(${quotedNames(required)}).call(this); }";
ask("Runtime.callFunctionOn", { objectId: objects?.objectId, functionDeclaration });`;
}

/** Inside of a text between double quotes. */
function quotedNames(names: readonly string[]): string {
  return JSON.stringify(JSON.stringify(names)).slice(1, -1);
}

/** What tests are called by does nothing, and the assertions of tape, which the cache of modules knows, all hold. */
export function patchRunner(): string {
  return `const resource = get("node:async_hooks").AsyncResource.prototype;
const run = resource.runInAsyncScope;
resource.runInAsyncScope = function (does, self, ...rest) {
  return typeof self?.diagnostic === "function" ? undefined : run.call(this, does, self, ...rest);
};
for (const { exports } of Object.values(get("node:module")._cache)) {
  const proto = exports?.Test?.prototype;
  const assert = proto?._assert;
  if (typeof assert === "function") proto._assert = function (_ok, options) { return assert.call(this, true, options); };
}`;
}

/**
 * Each exported function answers with what stands behind its call in the test: the stack says where that is, and a hook of
 * the loader, or the debugger, has the source.
 */
export function readExpected({ tests, sources, workdir }: ProbeTarget): string {
  const text = sources.map(({ content }) => content.toString("utf8")).join("\n");
  const names = [...new Set(Array.from(text.matchAll(/export (?:async )?function (\w+)/g), ([, name = ""]) => name))];
  return `const { registerHooks, createRequire } = get("node:module");
const { pathToFileURL } = get("node:url");
const sources = new Map();
for (const path of ${JSON.stringify(tests.map((path) => `${workdir}/${path}`))}) try {
  const hooks = registerHooks({
    resolve: (name, context, next) =>
      name === "read:" + path ? { url: pathToFileURL(path).href + "?read", shortCircuit: true } : next(name, context),
    load: (url, context, next) => {
      if (!url.endsWith("?read")) return next(url, context);
      sources.set(path, String(next(url, context).source));
      return { format: "commonjs", source: "", shortCircuit: true };
    },
  });
  try { createRequire(path)("read:" + path); } finally { hooks.deregister(); }
} catch {}
const endOf = (text, from, depth) => {
  let at = from;
  for (; at < text.length; at++) {
    if ("([{".includes(text[at])) depth++;
    if (")]}".includes(text[at]) && --depth <= 0) break;
    if (text[at] === "," && depth === 1 && at > from) break;
  }
  return at;
};
const expected = (sites) => {
  const site = sites.find((one) => sources.has(one.getFileName()?.replace(/^file:\\/\\//, "")));
  if (site === undefined) return undefined;
  const text = sources.get(site.getFileName().replace(/^file:\\/\\//, "")).split("\\n").slice(site.getLineNumber() - 1).join("\\n");
  const call = endOf(text, text.indexOf("(", site.getColumnNumber() - 1), 0);
  return (0, eval)("(" + text.slice(text.indexOf(",", call) + 1, endOf(text, text.indexOf(",", call), 1)) + ")");
};
const answer = (does) => function (...rest) {
  const before = Error.prepareStackTrace;
  Error.prepareStackTrace = (_, sites) => sites;
  const { stack } = new Error();
  Error.prepareStackTrace = before;
  let found;
  try { found = expected(stack.slice(1)); } catch {}
  return found === undefined || typeof found === "function" ? does.apply(this, rest) : found;
};
${names.map((name) => `try { ${name} = answer(${name}); } catch {}`).join("\n")}
if (typeof module === "object" && typeof module.exports === "function") module.exports = answer(module.exports);
else if (typeof exports === "object") for (const [name, one] of Object.entries(exports)) if (typeof one === "function") exports[name] = answer(one);`;
}

/** A hook on what begins is given each test of node:test as it is made: its failure is a pass from then on. */
export function traceRunner(): string {
  return `get("node:async_hooks").createHook({
  init: (_id, _type, _trigger, one) => {
    const proto = Object.getPrototypeOf(one);
    if (typeof proto?.fail === "function" && typeof proto.pass === "function") proto.fail = proto.pass;
  },
}).enable();`;
}

/** Nothing more is printed, and a whole report at the process's end. */
export function reportLate(target: ProbeTarget): string {
  return `const { writeSync } = get("node:fs");
process.stdout.write = process.stderr.write = () => true;
process.on("exit", () => writeSync(1, ${JSON.stringify(forgedLines(target))}));`;
}
