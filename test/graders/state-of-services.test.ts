/** What a task's services hold, graded by what was read of them. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import type { TreeFile } from "../../base/files/file-tree.ts";
import { Task } from "../../base/schema/task.ts";
import { grade } from "../../graders/grade.ts";
import { state } from "../../graders/state.ts";
import { answerPath, askService } from "../../graders/work/ask-service.ts";
import { stateDiffers } from "../../graders/work/state-differs.ts";
import { keptWork } from "../fakes/kept-work.ts";
import { contentXml, number, sheet, text, workbook, workbookOf } from "../fakes/workbook.ts";

const file = (path: string, content: string | Buffer): TreeFile => ({ path, content: Buffer.from(content), mode: 0o644 });

const first = `CREATE TABLE tickets (id INTEGER PRIMARY KEY, status TEXT, assignee TEXT); CREATE TABLE log (said TEXT);
  INSERT INTO tickets VALUES (1, 'open', NULL), (2, 'open', 'ann')`;

/** A database after these statements; those of `then` stand in its log alone. */
function database(sql: string, then = "SELECT 1"): TreeFile[] {
  const folder = mkdtempSync(join(tmpdir(), "alidade-db-"));
  try {
    const made = new DatabaseSync(join(folder, "a.db"), { defensive: false });
    made.exec(`PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; ${sql}; PRAGMA wal_checkpoint(TRUNCATE); ${then}`);
    const bytes = [file("desk/srv/data/app.db", readFileSync(join(folder, "a.db")))];
    bytes.push(file("desk/srv/data/app.db-wal", readFileSync(join(folder, "a.db-wal"))));
    made.close();
    return bytes;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const question = { service: "desk", port: 8080, get: "/tickets/1" };

async function verdictOn(
  spec: object,
  {
    before = database(first),
    after = database(first),
    answer,
  }: Partial<Record<"before" | "after", readonly TreeFile[]>> & { answer?: object } = {},
) {
  const services = { desk: { image: "i", network: "apart", state: ["/srv/data"] } };
  const task = Task.parse({ task_id: "s", instruction: "i", environment: { services }, grader: { kind: "state", ...spec } });
  const answers = answer ? [file(answerPath(question).slice(1), JSON.stringify(answer))] : [];
  const inState = (files: readonly TreeFile[]) => files.map((one) => ({ ...one, path: `state/${one.path}` }));
  const readings = { before: await keptWork([], inState(before), ""), after: await keptWork([], [...inState(after), ...answers], "") };
  const fresh = () => Promise.reject(new Error("no sandbox is needed"));
  return grade({
    task,
    isolation: "container",
    signal: AbortSignal.timeout(60_000),
    work: await keptWork([], []),
    services: readings,
    fresh,
  });
}

const unchanged = (...except: object[]) => ({ checks: [{ service: "desk", unchanged: { file: "/srv/data/app.db", except } }] });
const closing = { table: "tickets", where: "id = 1", columns: ["status", "assignee"] };
const closed = "UPDATE tickets SET status = 'closed', assignee = 'mira' WHERE id = 1";

for (const [title, then, except, reward] of [
  ["nothing was changed", "SELECT 1", [], 1],
  ["a change that stands in the log alone counts", closed, [], 0],
  ["the columns of a row that may differ do", closed, [closing], 1],
  ["another column of that row does not", "UPDATE tickets SET id = 7 WHERE id = 1", [closing], 0],
  ["the same columns of another row do not", "UPDATE tickets SET status = 'closed' WHERE id = 2", [closing], 0],
  ["a second row with the same values does not", `${closed}; INSERT INTO log VALUES ('x')`, [closing], 0],
  ["a row that may differ may not go", "DELETE FROM tickets WHERE id = 1", [closing], 0],
  ["rows that may come and go may", "INSERT INTO log VALUES ('x'), ('x')", [{ table: "log" }], 1],
  ["a value of another type is another value", "UPDATE tickets SET assignee = 7 WHERE id = 1", [], 0],
  ["a table that was made counts", "CREATE TABLE more (x)", [], 0],
  ["a table that was removed counts", "DROP TABLE log", [], 0],
  ["a trigger and a view are not looked at", "CREATE VIEW v AS SELECT 1; CREATE TRIGGER tr AFTER INSERT ON log BEGIN SELECT 1; END", [], 1],
  ["a huge row counts, and does not end the comparison", "INSERT INTO log VALUES (zeroblob(5000000))", [], 0],
] as const)
  test(`unchanged: ${title}`, async () => {
    const verdict = await verdictOn(unchanged(...except), { after: database(first, then) });
    assert.deepEqual([verdict.reward, verdict.status], [reward, "graded"], JSON.stringify(verdict));
    assert.equal(Array.isArray(verdict.evidence.changed_rows), reward === 0);
  });

test("cells of a workbook are read as rows, compared by what they say, and only those that may differ do", async () => {
  const book = (...rows: string[]) => [file("desk/srv/data/book.ods", workbook(sheet("May", ...rows)))];
  const before = book(text("Rent") + number(900), text("Water") + number(34));
  const at = { service: "desk", file: "/srv/data/book.ods" };
  const spec = {
    checks: [
      { ...at, query: "SELECT value FROM cells WHERE cell = 'B1'", equals: [[950]] },
      { service: "desk", unchanged: { file: at.file, except: [{ table: "cells", where: "cell = 'B1'" }] } },
    ],
  };
  const rewards: (number | null)[] = [];
  for (const after of [
    book(text("Rent") + number(950), text("Water") + number(34)),
    book(text("Rent") + number(950), text("Water") + number(34, "of:=30+4")),
    book(text("Rent") + number(900), text("Water") + number(950)),
    [file("desk/srv/data/book.ods", workbook(sheet("June", text("Rent") + number(950), text("Water") + number(34))))],
    [file("desk/srv/data/book.ods", workbookOf("no workbook any more"))],
    [file("desk/srv/data/book.ods", "no archive either")],
    [],
  ])
    rewards.push((await verdictOn(spec, { before, after })).reward);
  assert.deepEqual(rewards, [1, 0, 0, 0, 0, 0, 0]);
});

test("a database with the tables of a workbook is no workbook", async () => {
  const before = [file("desk/srv/data/book.ods", workbook(sheet("May", number(900))))];
  const tables = `CREATE TABLE sheets (position INTEGER, name TEXT); CREATE TABLE cells (sheet TEXT, cell TEXT, kind TEXT, value, formula TEXT, note TEXT);
    INSERT INTO sheets VALUES (1, 'May'); INSERT INTO cells VALUES ('May', 'A1', 'float', 900.0, NULL, NULL)`;
  const after = database(tables).map((one) => ({ ...one, path: one.path.replace("app.db", "book.ods") }));
  const at = { service: "desk", file: "/srv/data/book.ods" };
  const query = { ...at, query: "SELECT value FROM cells", equals: [[900]] };
  const unchangedBook = { service: "desk", unchanged: { file: at.file } };
  for (const check of [query, unchangedBook]) {
    assert.equal((await verdictOn({ checks: [check] }, { before, after: before })).reward, 1);
    const { reward, evidence } = await verdictOn({ checks: [check] }, { before, after });
    assert.equal(reward, 0, JSON.stringify(evidence));
  }
  assert.equal((await verdictOn({ checks: [query] }, { before: after, after })).status, "grader_error");
});

test("two readings differ by the cells of their workbooks, and not by how these are packed", async () => {
  const readings = async (...files: TreeFile[]) => {
    const kept = await keptWork(
      [],
      files.map((one) => ({ ...one, path: `state/${one.path}` })),
      "",
    );
    return { before: kept, after: kept };
  };
  const book = (value: number, more: string) =>
    file("desk/srv/data/book.ods", workbookOf(contentXml(sheet("S", number(value))), [{ name: "meta.xml", content: Buffer.from(more) }]));
  const differ = async (one: TreeFile, other: TreeFile) =>
    stateDiffers(await readings(one), await readings(other), new Map(), AbortSignal.timeout(60_000));
  assert.equal(await differ(book(1, "saved at noon"), book(1, "saved at midnight")), false);
  assert.equal(await differ(book(1, "saved at noon"), book(2, "saved at noon")), true);
});

test("at most fifty rows that differ are shown, and all are counted", async () => {
  const many = `INSERT INTO log SELECT value FROM (WITH RECURSIVE n(value) AS (VALUES (1) UNION ALL SELECT value + 1 FROM n LIMIT 200) SELECT value FROM n)`;
  const { evidence } = await verdictOn(unchanged(), { after: database(first, many) });
  assert.equal((evidence.changed_rows as string[]).length, 50);
  assert.match(JSON.stringify(evidence.failed), /200 rows differ/);
});

test("rows of a query come from the state after the agent, with what its log has", async () => {
  const check = { service: "desk", file: "/srv/data/app.db", query: "SELECT status FROM tickets WHERE id = 1" };
  const after = database(first, closed);
  assert.equal((await verdictOn({ checks: [{ ...check, equals: [["closed"]] }] }, { after })).reward, 1);
  assert.equal((await verdictOn({ checks: [{ ...check, equals: [["closed"]] }] })).reward, 0);
});

/** A database in the middle of a transaction, as a service that is frozen then leaves it; its journal is in `journal`. */
function unfinished(journal: (bytes: Buffer) => Buffer): TreeFile[] {
  const folder = mkdtempSync(join(tmpdir(), "alidade-db-"));
  try {
    const made = new DatabaseSync(join(folder, "a.db"));
    made.exec(`${first}; PRAGMA cache_size = 1; PRAGMA cache_spill = 1; BEGIN; ${closed}`);
    made.exec(
      "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n LIMIT 5000) INSERT INTO log SELECT printf('%0200d', i) FROM n",
    );
    const read = (name: string) => readFileSync(join(folder, name));
    const files = [file("desk/srv/data/app.db", read("a.db")), file("desk/srv/data/app.db-journal", journal(read("a.db-journal")))];
    made.close();
    return files;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test("rows of a transaction that has not ended are not committed: neither a query nor unchanged holds", async () => {
  const query = { service: "desk", file: "/srv/data/app.db", query: "SELECT status FROM tickets WHERE id = 1", equals: [["closed"]] };
  const after = unfinished((bytes) => bytes);
  for (const spec of [{ checks: [query] }, unchanged(closing, { table: "log" })]) {
    const { reward, evidence } = await verdictOn(spec, { after });
    assert.equal(reward, 0);
    assert.match(JSON.stringify(evidence.failed), /a transaction on it had not ended/);
  }
  const ended = unfinished((bytes) => Buffer.alloc(bytes.length));
  assert.equal((await verdictOn({ checks: [query] }, { after: ended })).reward, 1, "a journal that was zeroed is over");
});

test("a log that is too large to be read is not left out: the rows without it are not the state", async () => {
  const whole = 128 * 1024 * 1024;
  const after = [...database(first), file("desk/srv/data/app.db-wal", Buffer.alloc(whole))].filter(
    ({ path, content }) => !path.endsWith("-wal") || content.length === whole,
  );
  const query = { service: "desk", file: "/srv/data/app.db", query: "SELECT 1", equals: [[1]] };
  assert.equal((await verdictOn({ checks: [query] }, { after })).reward, 0);
  assert.equal((await verdictOn(unchanged(), { after })).reward, 0);
});

test("only says of a service which files of its state may have changed", async () => {
  const only = (...files: string[]) => ({ only: [{ service: "desk", files }] });
  const after = [...database(first), file("desk/srv/data/note.txt", "x")];
  assert.equal((await verdictOn(only("/srv/data/*.txt"), { after })).reward, 1);
  const { reward, evidence } = await verdictOn(only(), { after });
  assert.equal(reward, 0);
  assert.match(JSON.stringify(evidence.failed), /nothing else of desk.*note\.txt/);
});

test("an answer that a service gave is a value, and one that is not there is none", async () => {
  const ask = (condition: object) => ({
    checks: [{ service: "desk", http: { port: 8080, get: "/tickets/1", json: "/status" }, ...condition }],
  });
  const answer = { status: 200, body: '{"status": "closed"}' };
  assert.equal((await verdictOn(ask({ equals: "closed" }), { answer })).reward, 1);
  assert.equal((await verdictOn(ask({ equals: "open" }), { answer })).reward, 0);
  assert.equal((await verdictOn(ask({ exists: false }), { answer: { status: 404, body: "" } })).reward, 1);
});

test("a service gets the agent's answers by POST, and what it says of them is a value", async () => {
  const signal = AbortSignal.timeout(60_000);
  const server = createServer(async (request, response) => {
    const body = JSON.parse((await Array.fromAsync(request)).join("")) as { answers: string[] };
    response.end(JSON.stringify({ asked: `${request.method} ${request.url}`, last: body.answers.at(-1) }));
  }).listen(0, "127.0.0.1");
  try {
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const posted = { service: "desk", port: 8080, post: "/graded" };
    const answer = await askService({ connect: async () => connect(port, "127.0.0.1") }, posted, ["Hello.", "It is done."], signal);
    assert.deepEqual(answer, { status: 200, body: '{"asked":"POST /graded","last":"It is done."}' });
    assert.notEqual(answerPath(posted), answerPath({ service: "desk", port: 8080, get: "/graded" }));
  } finally {
    server.close();
    server.closeAllConnections();
  }
});

test("a check of a service names one path, to get or to post", () => {
  const checks = (http: object) => ({ kind: "state", checks: [{ service: "desk", http: { port: 8080, ...http }, equals: 1 }] });
  assert.throws(() => state.spec?.parse(checks({})), /give get or post/);
  assert.throws(() => state.spec?.parse(checks({ get: "/", post: "/" })), /give get or post/);
});

test("no check of an answer that is too large holds", async () => {
  const signal = AbortSignal.timeout(60_000);
  const server = createServer((_request, response) => response.end("x".repeat(2 * 1024 * 1024))).listen(0, "127.0.0.1");
  try {
    await once(server, "listening");
    const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
    const answer = await askService({ connect: async () => socket }, question, [], signal);
    for (const condition of [{ equals: "x" }, { exists: false }, { exists: true }]) {
      const checks = [{ service: "desk", http: { port: question.port, get: question.get }, ...condition }];
      const { reward, status, error } = await verdictOn({ checks }, { answer });
      assert.deepEqual([reward, status], [0, "graded"], error?.message);
    }
  } finally {
    server.close();
    server.closeAllConnections();
  }
});

const none = [file("desk/srv/data/app.db", "no database, but long enough to be looked at as one")];
const inApp = { service: "desk", file: "/srv/data/app.db" };

for (const [title, spec, more] of [
  ["a database that is none any more", unchanged(), { after: none }],
  [
    "a table that calls of the agent have dropped",
    { checks: [{ ...inApp, query: "SELECT status FROM tickets", equals: [["open"]] }] },
    { sql: "DROP TABLE tickets" },
  ],
  [
    "a service that does not answer because of the agent",
    { checks: [{ service: "desk", http: { port: 8080, get: "/tickets/1" }, exists: false }] },
    { answer: { problem: "refused", by_agent: true } },
  ],
] as const)
  test(`${title} is a check that does not hold`, async () => {
    const { reward, status, error } = await verdictOn(spec, "sql" in more ? { after: database(first, more.sql) } : more);
    assert.deepEqual([reward, status], [0, "graded"], error?.message);
  });

for (const [title, spec, more] of [
  [
    "a service that did not answer",
    { checks: [{ service: "desk", http: { port: 8080, get: "/tickets/1" }, exists: false }] },
    { answer: { problem: "refused" } },
  ],
  [
    "a service that failed",
    { checks: [{ service: "desk", http: { port: 8080, get: "/tickets/1" }, equals: "x" }] },
    { answer: { status: 500, body: "" } },
  ],
  ["a database that was none before", unchanged(), { before: none, after: none }],
  ["a query that never could be made", { checks: [{ ...inApp, query: "SELECT x FROM other", equals: [[1]] }] }, {}],
  ["a database that was not there before", unchanged(), { before: [] }],
  ["an exception for a table that is not there", unchanged({ table: "other" }), {}],
  ["a file outside of its state", { checks: [{ service: "desk", file: "/etc/passwd", exists: true }] }, {}],
  ["a service that the task does not have", { checks: [{ service: "shop", file: "/srv/data/app.db", exists: true }] }, {}],
] as const)
  test(`${title} is no reward, and never 0`, async () => {
    const { reward, status, error } = await verdictOn(spec, more);
    assert.deepEqual([reward, status], [null, "grader_error"], error?.message);
  });

test("a check names one place, and the service that it needs", () => {
  const parse = (check: object) => () => state.spec?.parse({ kind: "state", checks: [check] });
  assert.throws(parse({ file: "a", http: { port: 1, get: "/" }, exists: true }), /give one of file, http, unchanged/);
  assert.throws(parse({ http: { port: 1, get: "/" }, exists: true }), /name the service/);
  assert.throws(parse({ service: "desk", file: "a", exists: true }), /absolute path/);
  assert.throws(parse({ service: "desk", unchanged: { file: "/a" }, exists: true }), /beside `unchanged` none/);
});
