import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import type { TreeFile } from "../../base/files/file-tree.ts";
import { changesBetween, keepLayer, type LayerEntry, temporaryLayers } from "../../base/files/layer.ts";
import { currentOwner } from "../../base/host/owner.ts";
import { Task } from "../../base/schema/task.ts";
import { freshSandbox, grade } from "../../graders/grade.ts";
import { state } from "../../graders/state.ts";
import { localProcess } from "../../sandboxes/process.ts";
import { folderOf, keptWork } from "../fakes/kept-work.ts";

const owner = { run_id: "run-test-state", owner: await currentOwner() };
const file = (path: string, content: string | Buffer): TreeFile => ({ path, content: Buffer.from(content), mode: 0o644 });

/** The bytes of a database, and of the log beside it. */
function database(sql: string): { db: Buffer; wal: Buffer } {
  const folder = mkdtempSync(join(tmpdir(), "alidade-db-"));
  try {
    const made = new DatabaseSync(join(folder, "a.db"), { defensive: false });
    made.exec(`PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; ${sql}`);
    const bytes = { db: readFileSync(join(folder, "a.db")), wal: readFileSync(join(folder, "a.db-wal")) };
    made.close();
    return bytes;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** A database in the middle of a transaction that closes a ticket, and the journal beside it. */
function unfinished(): { db: Buffer; journal: Buffer } {
  const folder = mkdtempSync(join(tmpdir(), "alidade-db-"));
  try {
    const made = new DatabaseSync(join(folder, "a.db"));
    made.exec("CREATE TABLE t (status TEXT); CREATE TABLE log (said TEXT); INSERT INTO t VALUES ('open')");
    made.exec("PRAGMA cache_size = 1; PRAGMA cache_spill = 1; BEGIN; UPDATE t SET status = 'closed'");
    const many = "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n LIMIT 5000)";
    made.exec(`${many} INSERT INTO log SELECT printf('%0200d', i) FROM n`);
    const bytes = { db: readFileSync(join(folder, "a.db")), journal: readFileSync(join(folder, "a.db-journal")) };
    made.close();
    return bytes;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function verdictOn(base: TreeFile[], left: TreeFile[], spec: object) {
  const environment = { files: await folderOf(base) };
  const task = Task.parse({ task_id: "s", instruction: "i", environment, grader: { kind: "state", ...spec } });
  const context = { task, isolation: "container", signal: AbortSignal.timeout(60_000) } as const;
  return grade({ ...context, work: await keptWork(base, left), fresh: freshSandbox(context, localProcess, owner) });
}

const ticketsSql = "CREATE TABLE t (id INTEGER, status TEXT); INSERT INTO t VALUES (1, 'closed'), (9007199254740993, NULL)";
const base = [file("README.md", "as it was\n"), file("config.json", '{"a": {"b/c": [1, {"x": null}]}, "__proto__x": 1}')];
const left = (): TreeFile[] => {
  const { db, wal } = database(ticketsSql);
  return [...base, file("out/a.txt", "done\n"), file("app.db", db), file("app.db-wal", wal)];
};

for (const [title, check, reward] of [
  ["a text", { file: "out/a.txt", equals: "done\n" }, 1],
  ["another text", { file: "out/a.txt", equals: "done" }, 0],
  ["a part of a text", { file: "out/a.txt", contains: "don" }, 1],
  ["a pattern", { file: "out/a.txt", matches: "^d.ne" }, 1],
  ["a file that was not changed", { file: "README.md", equals: "as it was\n" }, 1],
  ["a file that is not there", { file: "out/b.txt", exists: false }, 1],
  ["a folder", { file: "out", exists: false }, 1],
  ["an absolute path", { file: "/work/out/a.txt", exists: true }, 1],
  ["a value in JSON", { file: "config.json", json: "/a/b~1c/1", equals: { x: null } }, 1],
  ["a value that only a prototype has", { file: "config.json", json: "/constructor", exists: false }, 1],
  ["JSON that is none", { file: "out/a.txt", json: "/a", equals: 1 }, 0],
  ["rows", { file: "app.db", query: "SELECT status FROM t WHERE id = 1", equals: [["closed"]] }, 1],
  ["rows that only the log has, exact", { file: "app.db", query: "SELECT * FROM t WHERE id > 1", equals: [["9007199254740993", null]] }, 1],
  ["other rows", { file: "app.db", query: "SELECT count(*) FROM t", equals: [[3]] }, 0],
  ["a table that is not there", { file: "app.db", query: "SELECT * FROM u", equals: [] }, 0],
  ["a database that is none", { file: "out/a.txt", query: "SELECT 1", equals: [[1]] }, 0],
] as const)
  test(`${title}: ${reward}`, async () => {
    const verdict = await verdictOn(base, left(), { checks: [check] });
    assert.deepEqual([verdict.reward, verdict.status, verdict.tier], [reward, "graded", "T3"], JSON.stringify(verdict.evidence));
  });

test("rows of a transaction that the work has not ended are not committed", async () => {
  const { db, journal } = unfinished();
  const check = { file: "app.db", query: "SELECT status FROM t", equals: [["closed"]] };
  const verdict = await verdictOn(base, [...base, file("app.db", db), file("app.db-journal", journal)], { checks: [check] });
  assert.equal(verdict.reward, 0);
  assert.match(JSON.stringify(verdict.evidence.failed), /a transaction on it had not ended/);
});

test("nothing else was changed: an added, a changed and a removed file each count", async () => {
  const spec = { only: ["out/**"] };
  assert.equal((await verdictOn(base, [...base, file("out/a.txt", "x")], spec)).reward, 1);
  for (const other of [[...base, file("b.txt", "")], [file("README.md", "other"), ...base.slice(1)], base.slice(1)]) {
    const verdict = await verdictOn(base, other, spec);
    assert.equal(verdict.reward, 0);
    assert.match(JSON.stringify(verdict.evidence.failed), /nothing else.*changed: (?:b\.txt|README\.md)/);
  }
});

for (const [title, sql, query] of [
  [
    "a view without an end",
    "CREATE VIEW t AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) AS i FROM n",
    "SELECT i FROM t",
  ],
  [
    "rows without an end",
    "CREATE VIEW t AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n",
    "SELECT i FROM t",
  ],
] as const)
  test(`${title} in a work's database is a check that does not hold, within seconds`, { timeout: 300_000 }, async () => {
    const { db, wal } = database(sql);
    const verdict = await verdictOn([], [file("a.db", db), file("a.db-wal", wal)], { checks: [{ file: "a.db", query, equals: [[1]] }] });
    assert.deepEqual([verdict.reward, verdict.status], [0, "graded"], JSON.stringify(verdict.evidence));
  });

const closedTickets = "SELECT 1 AS id, 'closed' AS status";
const lie = (sql: string) =>
  `${ticketsSql}; PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = '${sql.replaceAll("'", "''")}' WHERE name = 't'`;

for (const [title, sql, query, reward] of [
  ["a view", `CREATE VIEW t AS ${closedTickets}`, "SELECT status FROM t WHERE id = 1", 0],
  [
    "a view that is only counted",
    `CREATE TABLE real (a); INSERT INTO real VALUES (1); CREATE VIEW t AS SELECT * FROM real`,
    "SELECT count(*) FROM t",
    0,
  ],
  ["a view whose row says that it is a table", lie(`CREATE VIEW t AS ${closedTickets}`), "SELECT status FROM t WHERE id = 1", 0],
  ["a table that is made of a query", lie(`CREATE TABLE t AS ${closedTickets}`), "SELECT status FROM t WHERE id = 1", 0],
  ["a virtual table", "CREATE VIRTUAL TABLE t USING fts5(status); INSERT INTO t VALUES ('closed')", "SELECT status FROM t", 0],
  [
    "a collation that nothing knows",
    lie("CREATE TABLE t (id INTEGER PRIMARY KEY, status TEXT COLLATE own)"),
    "SELECT status FROM t WHERE status = 'closed'",
    0,
  ],
  [
    "a table beside a view and a trigger",
    `${ticketsSql}; CREATE VIEW v AS SELECT * FROM t; CREATE TRIGGER g DELETE ON t BEGIN SELECT 1; END`,
    "SELECT status FROM t WHERE id = 1",
    1,
  ],
  [
    "a table without row ids",
    "CREATE TABLE t (id INTEGER PRIMARY KEY, status TEXT) WITHOUT ROWID; INSERT INTO t VALUES (1, 'closed')",
    "SELECT status FROM t WHERE id = 1",
    1,
  ],
] as const)
  test(`a query asks tables alone: ${title} earns ${reward}`, async () => {
    const { db, wal } = database(sql);
    const equals = query.includes("count") ? [[1]] : [["closed"]];
    const verdict = await verdictOn([], [file("a.db", db), file("a.db-wal", wal)], { checks: [{ file: "a.db", query, equals }] });
    assert.deepEqual([verdict.reward, verdict.status], [reward, "graded"], JSON.stringify(verdict.evidence));
  });

test("a column that computes a gigabyte gets no more memory than all else, and its check does not hold", async () => {
  const { db, wal } = database("CREATE TABLE t (a, b GENERATED ALWAYS AS (zeroblob(900000000))); INSERT INTO t (a) VALUES (1)");
  const query = "SELECT length(hex(b)) FROM t";
  const verdict = await verdictOn([], [file("a.db", db), file("a.db-wal", wal)], { checks: [{ file: "a.db", query, exists: true }] });
  assert.deepEqual([verdict.reward, verdict.status], [0, "graded"]);
  assert.match(JSON.stringify(verdict.evidence.failed), /out of memory|too big/);
});

test("a file that says everything is longer than what is looked into, and `longest` says how long that is", async () => {
  const all = Array.from({ length: 1_000 }, (_, number) => `${number} tickets\n`).join("");
  const verdictWith = (more: object) =>
    verdictOn([], [file("a.txt", all)], { checks: [{ file: "a.txt", contains: "3 tickets", ...more }] });
  const verdict = await verdictWith({});
  assert.equal(verdict.reward, 0);
  assert.match(JSON.stringify(verdict.evidence.failed), /it has 11890 characters, and is looked into up to 10000 \(longest\)/);
  assert.deepEqual([(await verdictWith({ longest: 11_890 })).reward, (await verdictWith({ longest: 40 })).reward], [1, 0]);
});

test("a query reaches no other database of this machine", async () => {
  const secret = join(mkdtempSync(join(tmpdir(), "alidade-db-")), "secret.db");
  const made = new DatabaseSync(secret);
  made.exec("CREATE TABLE s (x); INSERT INTO s VALUES ('secret')");
  made.close();
  assert.throws(
    () => state.spec?.parse({ kind: "state", checks: [{ file: "a.db", query: `ATTACH '${secret}' AS o`, equals: [] }] }),
    /give a query that reads/,
  );
  for (const query of [
    `SELECT load_extension('${secret}')`,
    "SELECT * FROM pragma_database_list",
    `WITH x AS (SELECT 1) SELECT readfile('${secret}')`,
  ]) {
    const verdict = await verdictOn([], [file("a.db", database(ticketsSql).db)], { checks: [{ file: "a.db", query, exists: true }] });
    assert.equal(verdict.reward, 0, query);
  }
  rmSync(secret);
});

test("a header that lies about its pages is no database, and a damaged one no answer", async () => {
  for (const spoil of [
    (bytes: Buffer) => bytes.fill(0xff, 16, 40),
    (bytes: Buffer) => bytes.subarray(0, 700),
    (bytes: Buffer) => bytes.fill(0xff, 100),
  ]) {
    const db = spoil(Buffer.from(database(ticketsSql).db));
    const verdict = await verdictOn([], [file("a.db", db)], {
      checks: [{ file: "a.db", query: "SELECT status FROM t", equals: [["closed"]] }],
    });
    assert.deepEqual([verdict.reward, verdict.status], [0, "graded"]);
  }
});

test("a link, and a folder that is one, lead nowhere", async () => {
  const link = (path: string, target: string): LayerEntry => ({
    path,
    type: "link",
    kind: "modified",
    mode: 0o777,
    owner: null,
    mtime: new Date(0),
    size: 0,
    target,
    content: null,
  });
  await using kept = await temporaryLayers();
  const task = Task.parse({
    task_id: "s",
    instruction: "i",
    environment: { files: await folderOf([file("out/a.txt", "done\n"), file("b.txt", "done\n")]) },
    grader: {
      kind: "state",
      checks: [
        { file: "out/a.txt", exists: true },
        { file: "b.txt", exists: true },
      ],
    },
  });
  const context = { task, signal: AbortSignal.timeout(60_000) };
  const entries = async function* () {
    yield* changesBetween([], [], "/work");
    yield link("/work/b.txt", "/etc/passwd");
    yield link("/work/out", "/etc");
  };
  const verdict = await grade({
    ...context,
    work: await keepLayer(entries(), kept.folder),
    fresh: freshSandbox(context, localProcess, owner),
  });
  assert.deepEqual([verdict.reward, verdict.evidence.failed_count], [0, 2]);
});

test("a spec says what it looks at", () => {
  for (const [spec, why] of [
    [{}, /give checks, or only/],
    [{ checks: [{ file: "a" }] }, /give one of equals, contains, matches, exists/],
    [{ checks: [{ file: "../a", exists: true }] }, /give a normal path/],
    [{ checks: [{ file: "a", json: "a", exists: true }] }, /JSON pointer/],
    [{ checks: [{ file: "a", json: "", query: "SELECT 1", exists: true }] }, /json or query/],
    [{ checks: [{ file: "a", query: "DELETE FROM t", exists: true }] }, /give a query that reads/],
  ] as const)
    assert.throws(() => state.spec?.parse({ kind: "state", ...spec }), why, JSON.stringify(spec));
});
