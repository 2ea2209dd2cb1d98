/** What `alidade view` loads: each module stays in memory beside the rows of the run. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const script = `
import { registerHooks } from "node:module";
const loaded = new Set();
registerHooks({
  resolve: (specifier, context, next) => {
    const found = next(specifier, context);
    loaded.add(found.url);
    return found;
  },
});
await import(process.argv[1]);
console.log(JSON.stringify([...loaded]));
process.exit();
`;

test("the view's server loads no ledger, no engine, no sandbox, and no writer of export formats", async () => {
  const door = new URL("../../../view/server/index.ts", import.meta.url);
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", script, door.href]);
  const root = fileURLToPath(new URL("../../../", import.meta.url));
  const loaded = (JSON.parse(stdout) as string[]).flatMap((url) =>
    url.startsWith("file:") ? [fileURLToPath(url).slice(root.length)] : [],
  );
  assert.ok(loaded.includes("view/run/run-reader.ts"));
  const heavy = /^(?:service\/ledger|engines\/registry|sandboxes|graders|harnesses|exporters\/registry|node_modules\/hyparquet)/;
  assert.deepEqual(
    loaded.filter((path) => heavy.test(path)),
    [],
  );
});
