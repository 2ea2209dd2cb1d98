import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { proofs } from "../../exporters/exporter.ts";
import { exporters } from "../../exporters/registry.ts";
import { trainers } from "../interop/consumers/trainers.ts";
import { exportersReadme, path } from "./exporters-readme.ts";

test("exporters/README.md says what the exporters declare", async () => {
  assert.equal(await readFile(path, "utf8"), exportersReadme(), "run: node test/contracts/exporters-readme.ts");
});

const namesShown = (how: (typeof proofs)[number]): string[] =>
  exporters.filter(({ docs }) => docs.proof.how === how).map(({ name }) => name);

test("a format is said to be read by a trainer's own code where CI has that trainer read it, in the version that CI installs", async () => {
  // Those of tables.test.ts beside the trainers that recompute logprobs.
  const read = [...trainers.map(({ format }) => format), "trl-sft", "trl-dpo", "parquet"];
  assert.deepEqual(namesShown("trainer").toSorted(), read.toSorted());
  const pins = await readFile(new URL("../interop/consumers/requirements.txt", import.meta.url), "utf8");
  for (const { name, docs } of exporters.filter(({ docs }) => docs.proof.how === "trainer"))
    for (const [, trainer, version] of docs.proof.by.matchAll(/([a-z-]+) (\d+\.\d+\.\d+)/g))
      assert.ok(pins.includes(`${trainer}==${version}\n`), `${name}: CI does not install ${trainer} ${version}`);
});

test("README says how many formats are shown to be read, and how", async () => {
  const readme = await readFile(new URL("../../README.md", import.meta.url), "utf8");
  const said =
    /(\d+) \[export formats\].*: (\d+) are read in CI .*, (\d+) were held against it by hand .*, (\d+) follow .*, (\d+) are our own/.exec(
      readme,
    );
  const counts = proofs.map((how) => namesShown(how).length);
  assert.deepEqual(said?.slice(1).map(Number), [exporters.length, ...counts]);
});
