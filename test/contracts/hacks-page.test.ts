import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { probes } from "../../graders/probes/index.ts";
import { hackSettings } from "../fakes/hacks/hack-settings.ts";
import { hackRows } from "./hack-rows.ts";
import { hacksPage, path, recordedOutcomes } from "./hacks-page.ts";

test("docs/hacks.md says what the probes came to", async () => {
  assert.equal(await readFile(path, "utf8"), hacksPage(await recordedOutcomes()), "run: node test/contracts/hacks-page.ts");
});

test("every row has a probe, or words for where it is proven, and every probe was tried", async () => {
  const tried = new Set(Object.values(await recordedOutcomes()).flatMap((outcomes) => Object.keys(outcomes)));
  assert.deepEqual(
    probes.filter(({ name }) => !tried.has(name)).map(({ name }) => name),
    [],
  );
  const bare = hackRows.filter(({ row, elsewhere }) => elsewhere === undefined && !probes.some(({ rows }) => rows.includes(row)));
  assert.deepEqual(bare, []);
  assert.deepEqual(
    Object.keys(await recordedOutcomes()),
    hackSettings.map(({ name }) => name),
  );
});

test("nothing pays at T2, the tier of its own report, nor at T3, where the work is a command", async () => {
  const outcomes = await recordedOutcomes();
  const apart = hackSettings.filter(({ title }) => title.endsWith("T2")).map(({ name }) => name);
  assert.deepEqual(apart.sort(), ["javascript-apart", "pytest-apart", "python-apart", "tape-apart"]);
  const safe = [...apart, "cases", "c-cases"];
  for (const name of safe)
    assert.deepEqual(
      Object.entries(outcomes[name] ?? {}).filter(([, outcome]) => outcome === "paid"),
      [],
      name,
    );
});
