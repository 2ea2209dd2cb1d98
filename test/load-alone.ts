/**
 * Loads every test file that is named, runs none of its tests, and prints a line for each that did something meanwhile.
 * The runtime itself refuses files and processes: `node --permission --allow-fs-read=* test/load-alone.ts FILE…`.
 */
import { registerHooks } from "node:module";
import { pathToFileURL } from "node:url";
import { messageOf } from "../base/errors.ts";

/** Declared tests and hooks do not run: what is looked at is what stands beside them. */
const declarations = ["test", "it", "suite", "describe", "before", "after", "beforeEach", "afterEach"];
const silent = `const ignore = () => {}; export { ${declarations.map((name) => `ignore as ${name}`).join(", ")}, ignore as default };`;

registerHooks({
  resolve: (specifier, context, next) =>
    specifier === "node:test" ? { url: `data:text/javascript,${silent}`, shortCircuit: true } : next(specifier, context),
});

for (const file of process.argv.slice(2)) {
  const was = processState();
  const error = await import(pathToFileURL(file).href).then(() => null, messageOf);
  const is = processState();
  const changes = Object.keys(was).filter((key) => was[key] !== is[key]);
  if (error !== null || changes.length > 0) console.log(`${file}: ${error ?? `it changes ${changes.join(" and ")}`}`);
}
// What a file left open would keep this process.
process.exit();

/** What a file can change that the runtime does not refuse. */
function processState(): Record<string, string> {
  return {
    "the working directory": process.cwd(),
    "the environment": JSON.stringify(process.env),
    "the exit code": String(process.exitCode),
    "what is open": process
      .getActiveResourcesInfo()
      .filter((name) => /Server|Socket|Timeout/.test(name))
      .join(),
  };
}
