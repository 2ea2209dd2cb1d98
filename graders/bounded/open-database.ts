/** Opens a copy of a work's own database, or a workbook as one, to be read in the process that is killed. */
import { readFileSync } from "node:fs";
import { constants, DatabaseSync } from "node:sqlite";
import { isWorkbook, readWorkbook } from "./read-workbook.ts";

/**
 * The file is the work's own: what it defines calls nothing that reaches out of it, and has as much memory as the rest here.
 * Without the last a value such as `zeroblob(1e9)` of a generated column had a gigabyte.
 */
const guards =
  "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0; PRAGMA temp_store = MEMORY; PRAGMA hard_heap_limit = 268435456";

/** SQLite writes these words itself, whatever the statement was that made the table. */
const noTable = "sql NOT LIKE 'CREATE TABLE %' AND sql NOT LIKE 'CREATE INDEX %' AND sql NOT LIKE 'CREATE UNIQUE INDEX %'";

/** A database can have the same tables as a workbook, and no office program opens it. */
export type Tables = { kind: "workbook" | "database"; database: DatabaseSync };

/** Its tables, to be read alone. */
export function openTables(file: string): Tables {
  const content = readFileSync(file);
  if (isWorkbook(content)) return { kind: "workbook", database: workbookTables(content) };
  keepTables(file);
  return { kind: "database", database: openDatabase(file, { readOnly: true }) };
}

/** From now on a statement can only read. */
export function allowReads(database: DatabaseSync): void {
  const allowed = new Set([constants.SQLITE_SELECT, constants.SQLITE_READ, constants.SQLITE_FUNCTION, constants.SQLITE_RECURSIVE]);
  database.setAuthorizer((action) => (allowed.has(action) ? constants.SQLITE_OK : constants.SQLITE_DENY));
}

function openDatabase(file: string, options: { readOnly: boolean; defensive?: boolean }): DatabaseSync {
  const database = new DatabaseSync(file, { allowExtension: false, ...options });
  database.exec(guards);
  return database;
}

/** A view has the rows that its text makes up, so the copy keeps tables alone, and a query on anything else finds none. */
function keepTables(file: string): void {
  const database = openDatabase(file, { readOnly: false, defensive: false });
  try {
    const found = database.prepare(`SELECT count(*) AS count FROM sqlite_schema WHERE ${noTable}`).get();
    if (found?.count !== 0) database.exec(`PRAGMA writable_schema = ON; DELETE FROM sqlite_schema WHERE ${noTable}`);
  } finally {
    database.close();
  }
}

/** Each workbook becomes the same two tables, so a query names any cell in the same way. */
function workbookTables(content: Buffer): DatabaseSync {
  const { sheets, cells } = readWorkbook(content);
  const database = openDatabase(":memory:", { readOnly: false });
  database.exec(
    "BEGIN; CREATE TABLE sheets (position INTEGER, name TEXT); CREATE TABLE cells (sheet TEXT, cell TEXT, kind TEXT, value, formula TEXT, note TEXT)",
  );
  const addSheet = database.prepare("INSERT INTO sheets VALUES (?, ?)");
  for (const [index, name] of sheets.entries()) addSheet.run(index + 1, name);
  const addCell = database.prepare("INSERT INTO cells VALUES (?, ?, ?, ?, ?, ?)");
  for (const { sheet, name, kind, value, formula, note } of cells) addCell.run(sheet, name, kind, value, formula, note);
  database.exec("COMMIT");
  return database;
}
