/** Tables of the layout before become today's, and others are refused. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { PostgresLedger, SetSpec, SqliteLedger } from "../../service/ledger/index.ts";
import { type Layout, stepsToNow } from "../../service/ledger/layout.ts";
import { layout as postgresLayout } from "../../service/ledger/postgres/tables.ts";
import { PostgresPlace, postgresFor } from "../fakes/machine/postgres.ts";
import { scratchFolder } from "../fakes/machine/scratch-folder.ts";
import { need } from "../needs.ts";

const scratch = scratchFolder("layouts");
const postgres = postgresFor();

const spec = SetSpec.parse({ samples: 3, allocation: { policy: "balanced", first: 2, most: 5 } });

test("sqlite: a file of the layout before is changed once, and what stands in it stays", async () => {
  const path = join(scratch, "old.sqlite");
  const changed: Layout = { now: 8, fromBefore: ["CREATE TABLE made (n INTEGER) STRICT", "INSERT INTO made SELECT count(*) FROM sets"] };
  const ids: string[] = [];
  for (const layout of [undefined, changed, changed]) {
    await using ledger = SqliteLedger.open(path, layout && { layout });
    ids.push(ledger.id, (await ledger.putSet("s", spec)).set_id);
  }
  assert.equal(new Set(ids).size, 2);
  using file = new DatabaseSync(path);
  assert.deepEqual({ ...file.prepare("SELECT n FROM made").get() }, { n: 1 });
});

test("sqlite: a file of a newer layout is refused with what to do, and stays as it is", async () => {
  const path = join(scratch, "newer.sqlite");
  {
    using file = new DatabaseSync(path);
    file.exec("CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT; INSERT INTO facts VALUES ('layout', '8')");
  }
  const message = `${path}: it is a ledger of layout 8, and this version reads 7 at most: update Alidade`;
  assert.throws(() => SqliteLedger.open(path), { code: "store_error", message });
  using file = new DatabaseSync(path);
  assert.deepEqual(file.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").all().length, 1);
});

test("sqlite: a change that fails leaves the file as it was", async () => {
  const path = join(scratch, "broken.sqlite");
  await SqliteLedger.open(path)[Symbol.asyncDispose]();
  const layout: Layout = { now: 8, fromBefore: ["CREATE TABLE made (n INTEGER) STRICT", "INSERT INTO absent VALUES (1)"] };
  assert.throws(() => SqliteLedger.open(path, { layout }), { code: "store_error", message: /no such table: absent/ });
  await using again = SqliteLedger.open(path);
  assert.ok(again.id);
});

test("postgres: a schema of layout 12 gets the tables of parked rollouts, and what stands in it stays", async (t) => {
  if (!(await need(t, "postgres"))) return;
  assert.equal(postgresLayout.now, 13, "the next layout needs a test of its own in the place of this one");
  const at = new PostgresPlace(postgres, "before");
  const ids: string[] = [];
  for (const isBefore of [true, false, false]) {
    await using ledger = await PostgresLedger.open(await at.url());
    ids.push(ledger.id, (await ledger.putSet("s", spec)).set_id);
    if (!isBefore) continue;
    await at.ask("DROP TABLE parked");
    await at.ask("DROP TABLE unparked");
    await at.ask("UPDATE facts SET value = '12' WHERE name = 'layout'");
  }
  assert.equal(new Set(ids).size, 2);
  await at.ask("INSERT INTO unparked VALUES ('s', 'too_old', 1)");
  assert.deepEqual(await at.ask("SELECT taken_by FROM parked"), []);
  await at.ask("UPDATE facts SET value = '14' WHERE name = 'layout'");
  await assert.rejects(PostgresLedger.open(await at.url()), {
    code: "store_error",
    message: /layout 14, and this version reads 13 at most: update Alidade$/,
  });
});

test("a layout that is older than the one before, or no number, is refused with another way out", () => {
  const layout = { now: 12, fromBefore: ["SELECT 1"] };
  assert.deepEqual([stepsToNow("12", layout, "schema"), stepsToNow("11", layout, "schema")], [[], ["SELECT 1"]]);
  for (const found of ["10", "", "x"])
    assert.throws(() => stepsToNow(found, layout, "schema"), /and this version reads 12: name another schema$/);
});
