import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { installCommand } from "../../../base/host/install-command.ts";
import { scratchFolder } from "../../fakes/machine/scratch-folder.ts";
import { root } from "../../fakes/processes/cli.ts";

test("the command that installs an optional package fits where the program lies", async () => {
  const place = scratchFolder("install-command");
  const command = (root: string, from: string) => installCommand(["a@1", "b@2"], { root, from });
  const checkout = join(place, "clone");
  assert.equal(command(checkout, checkout), "npm install --save-prod --no-save a@1 b@2");
  assert.equal(command(checkout, place), `npm install --save-prod --no-save --prefix ${checkout} a@1 b@2`);
  assert.equal(command(join(place, "lib/node_modules/alidade"), place), "npm install -g a@1 b@2");
  const project = join(place, "project");
  await mkdir(project, { recursive: true });
  await writeFile(join(project, "package.json"), "{}");
  assert.equal(command(join(project, "node_modules/alidade"), project), "npm install a@1 b@2");
  assert.equal(command(join(project, "node_modules/alidade"), place), `npm install --prefix ${project} a@1 b@2`);
  assert.equal(installCommand(["a@1"], { from: root }), "npm install --save-prod --no-save a@1", "this checkout");
});
