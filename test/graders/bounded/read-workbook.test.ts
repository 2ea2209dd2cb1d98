import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { queryRows } from "../../../graders/bounded/query-rows.ts";
import { isWorkbook, readWorkbook } from "../../../graders/bounded/read-workbook.ts";
import { contentXml, number, sheet, text, workbook, workbookOf, zipOf } from "../../fakes/workbook.ts";

const signal = (): AbortSignal => AbortSignal.timeout(60_000);
const cellsOf = (content: Buffer) => readWorkbook(content).cells.map(({ sheet, name, value }) => `${sheet}!${name}=${value}`);

test("a query reads the cells of a workbook that LibreOffice saved", async () => {
  const content = await readFile(join(import.meta.dirname, "../../../examples/tasks/budget/office/budget.ods"));
  const ask = (query: string) => queryRows(content, null, query, signal());
  assert.deepEqual(await ask("SELECT position, name FROM sheets ORDER BY position"), {
    rows: [
      [1, "April"],
      [2, "May"],
    ],
  });
  assert.deepEqual(await ask("SELECT cell, kind, value, formula FROM cells WHERE sheet = 'May' AND cell IN ('A2', 'B2', 'B8')"), {
    rows: [
      ["A2", "string", "Rent", null],
      ["B2", "float", 900, null],
    ],
  });
  assert.match(JSON.stringify(await ask("SELECT 1; DELETE FROM cells")), /rows|error/);
  assert.match(JSON.stringify(await ask("WITH x AS (SELECT 1) DELETE FROM cells")), /not authorized/);
});

test("formulas, errors, dates, notes, links, spaces and repeats are read; drawings, changes and nested sheets are not", () => {
  const { sheets, cells } = readWorkbook(
    workbook(
      '<table:tracked-changes><table:table table:name="old"><table:table-row><table:table-cell office:value-type="float" office:value="7"/></table:table-row></table:table></table:tracked-changes>' +
        sheet(
          "One &amp; only",
          text('a<text:s text:c="2"/>b<text:line-break/><text:a xlink:href="http://x/">c&lt;</text:a>') +
            number(3, "of:=SUM([.A1:.A2])") +
            '<table:table-cell table:formula="of:=1/0" office:value-type="string" office:string-value="" calcext:value-type="error"><text:p>#DIV/0!</text:p></table:table-cell>',
          '<table:table-cell table:number-columns-repeated="27"/><table:table-cell office:value-type="date" office:date-value="2026-11-29"><text:p>29.11.26</text:p></table:table-cell>',
          "<table:table-cell><office:annotation><dc:creator>me</dc:creator><text:p>a note</text:p></office:annotation><draw:frame><text:p>drawn</text:p></draw:frame></table:table-cell>",
        ) +
        '<table:table table:name="Two"><table:shapes><text:p>drawn</text:p></table:shapes><table:table-row table:number-rows-repeated="2"><table:table-cell table:number-columns-repeated="2" office:value-type="percentage" office:value="0.5"/></table:table-row><table:table-row table:number-rows-repeated="1048574"><table:table-cell table:number-columns-repeated="16384"/></table:table-row></table:table>',
    ),
  );
  assert.deepEqual(sheets, ["One & only", "Two"]);
  assert.deepEqual(
    cells.map(({ name, kind, value, formula, note }) => [name, kind, value, formula, note]),
    [
      ["A1", "string", "a  b\nc<", null, null],
      ["B1", "float", 3, "of:=SUM([.A1:.A2])", null],
      ["C1", "error", "#DIV/0!", "of:=1/0", null],
      ["AB2", "date", "2026-11-29", null, null],
      ["A3", "empty", null, null, "a note"],
      ...["A1", "B1", "A2", "B2"].map((name) => [name, "percentage", 0.5, null, null]),
    ],
  );
});

test("a field of a cell is a part of what the cell shows", () => {
  const fields =
    'Rent<text:sheet-name>May</text:sheet-name> <text:date text:date-value="2026-11-29">29.11.</text:date><text:span> <text:title>T<!-- --></text:title></text:span>';
  assert.throws(() => readWorkbook(workbook(sheet("May", text(fields)))), /comments or CDATA/);
  assert.deepEqual(cellsOf(workbook(sheet("May", text(fields.replace("<!-- -->", ""))))), ["May!A1=RentMay 29.11. T"]);
});

const packed = (content: string, wrong: object) =>
  zipOf([
    { name: "mimetype", content: Buffer.from("application/vnd.oasis.opendocument.spreadsheet"), isStored: true },
    { name: "content.xml", content: Buffer.from(content), ...wrong },
  ]);
const whole = contentXml(sheet("S", number(1)));
const cell = '<table:table-cell office:value-type="float" office:value="1"';

for (const [title, content, why] of [
  ["no archive", Buffer.from("PK\x03\x04 and no more, but long enough to hold an end"), /no zip archive/],
  ["no content", zipOf([{ name: "styles.xml", content: Buffer.from(whole) }]), /no content\.xml/],
  ["two contents", workbookOf(whole, [{ name: "content.xml", content: Buffer.from(whole) }]), /content\.xml twice/],
  ["an encrypted content", packed(whole, { flags: 1 }), /encrypted/],
  ["an unknown method", packed(whole, { method: 12 }), /unknown way/],
  ["a wrong checksum", packed(whole, { crc: 1 }), /damaged/],
  ["a smaller size than the content's", packed(whole, { size: 10 }), /damaged|larger than/],
  ["a bomb that tells its size", workbookOf(Buffer.alloc(40 * 1024 * 1024, " ")), /more than 33554432 bytes/],
  ["a bomb that lies about its size", packed(" ".repeat(40 * 1024 * 1024), { size: 10 }), /larger than|Cannot create/],
  ["a list behind the archive", workbook("").subarray(0, -30), /no zip archive/],
  ["a document type", workbookOf(`<!DOCTYPE x [<!ENTITY a "b">]>${whole}`), /well-formed/],
  ["a text that is no UTF-8", workbookOf(Buffer.from([...Buffer.from(whole), 0xff])), /valid|decode|encoded/],
  ["an end that is missing", workbookOf(whole.slice(0, -20)), /well-formed|ends early/],
  ["a wrong end", workbookOf("<office:document-content></office:body>"), /closes nothing/],
  ["deep elements", workbookOf("<a>".repeat(200)), /deeper than 100/],
  ["no sheet", workbook(""), /no sheet/],
  ["too many sheets", workbook(sheet("S").repeat(1_001)), /more than 1000 sheets/],
  [
    "too many cells",
    workbook(sheet("S", `${cell} table:number-columns-repeated="16384"/>`.repeat(1)).repeat(13)),
    /more than 200000 cells/,
  ],
  [
    "too many cells of a repeated row",
    workbook(`<table:table table:name="S"><table:table-row table:number-rows-repeated="1048576">${cell}/></table:table-row></table:table>`),
    /more than 200000 cells/,
  ],
  [
    "too many rows",
    workbook(`<table:table>${'<table:table-row table:number-rows-repeated="1048576"/>'.repeat(2)}</table:table>`),
    /more than 1048576 rows/,
  ],
  ["a repeat that is no number", workbook(sheet("S", `${cell} table:number-columns-repeated="1e9"/>`)), /number-columns-repeated is 1e9/],
  ["hidden text", workbook(sheet("S", text("a<![CDATA[b]]>"))), /comments or CDATA/],
] as [string, Buffer, RegExp][])
  test(`a workbook with ${title} is refused`, () => {
    assert.throws(() => readWorkbook(content), why);
  });

test("a file is a workbook by its first bytes alone", () => {
  assert.equal(isWorkbook(workbook("")), true);
  assert.equal(isWorkbook(zipOf([{ name: "content.xml", content: Buffer.from(whole) }])), false);
  assert.equal(isWorkbook(Buffer.from("SQLite format 3\0")), false);
  assert.equal(isWorkbook(Buffer.alloc(0)), false);
});

test("rows in groups and header rows are rows, and a covered cell has its place", () => {
  const row = (cells: string) => `<table:table-row>${cells}</table:table-row>`;
  const content = workbook(
    `<table:table table:name="S"><table:table-header-rows>${row(text("h"))}</table:table-header-rows><table:table-row-group>${row(`${text("a")}<table:covered-table-cell/>${text("c")}`)}</table:table-row-group></table:table>`,
  );
  assert.deepEqual(cellsOf(content), ["S!A1=h", "S!A2=a", "S!C2=c"]);
});
