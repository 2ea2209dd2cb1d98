/**
 * The cells of an OpenDocument workbook (.ods), as LibreOffice saves it. It is read as data: no formula is computed, no link is
 * followed, and what is neither a sheet nor a cell is passed over.
 * https://docs.oasis-open.org/office/OpenDocument/v1.3/os/part3-schema/OpenDocument-v1.3-os-part3-schema.html
 */
import { decodeEntities, type Tag, tagsOf } from "./xml-tags.ts";
import { zipEntry } from "./zip-entry.ts";

/** `name`: as in B3. `value`: what it shows, a number where it is one. `formula`: as the file has it, such as `of:=SUM([.B2:.B7])`. */
export type WorkbookCell = {
  sheet: string;
  name: string;
  kind: string;
  value: number | string | null;
  formula: string | null;
  note: string | null;
};

export type Workbook = { sheets: string[]; cells: WorkbookCell[] };

const kindOfFile = "application/vnd.oasis.opendocument.spreadsheet";
const firstName = "mimetype";
/** OpenDocument wants this at the very front, so that nothing needs to be unpacked to know it. */
const front = Buffer.concat([Buffer.from(firstName), Buffer.from(kindOfFile)]);
const zipFront = Buffer.from("PK\x03\x04");
const frontAt = 30;

/** A hundred times what a workbook of a task has. */
const mostBytes = 32 * 1024 * 1024;
const mostCells = 200_000;
const mostSheets = 1_000;
const most = { rows: 1_048_576, columns: 16_384 };
/** Deeper than LibreOffice nests. */
const deepest = 100;

export function isWorkbook(content: Buffer): boolean {
  return content.subarray(0, zipFront.length).equals(zipFront) && content.subarray(frontAt, frontAt + front.length).equals(front);
}

/** Throws why it cannot be read. */
export function readWorkbook(archive: Buffer): Workbook {
  return new CellReader(new TextDecoder("utf8", { fatal: true }).decode(zipEntry(archive, "content.xml", mostBytes))).read();
}

const cellNames = ["table:table-cell", "table:covered-table-cell"];
const rowGroups = ["table:table-header-rows", "table:table-rows", "table:table-row-group"];
/** What stands in a text is text, such as a field with the sheet's name. LibreOffice shows it as a part of the cell. */
const isInText = (name: string, place: string): boolean => name.startsWith(ofTexts) && place.startsWith(ofTexts);
const ofTexts = "text:";

/** Where each element may be. What is elsewhere is passed over with all that is in it: drawings, forms, changes, cached links. */
const within: ReadonlyMap<string, readonly string[]> = new Map<string, readonly string[]>([
  ["office:document-content", [""]],
  ["office:body", ["office:document-content"]],
  ["office:spreadsheet", ["office:body"]],
  ["table:table", ["office:spreadsheet"]],
  ...rowGroups.map((name): [string, string[]] => [name, ["table:table", ...rowGroups]]),
  ["table:table-row", ["table:table", ...rowGroups]],
  ...cellNames.map((name): [string, string[]] => [name, ["table:table-row"]]),
  ["office:annotation", cellNames],
  ["text:p", [...cellNames, "office:annotation"]],
]);

type OpenCell = { attributes: Tag["attributes"]; repeated: number; text: string[]; note: string[] };

class CellReader {
  readonly #text: string;
  readonly #open: string[] = [];
  /** How many elements are open that are passed over. */
  #skipped = 0;
  readonly #sheets: string[] = [];
  readonly #cells: WorkbookCell[] = [];
  #row = 0;
  #rowsRepeated = 1;
  #column = 0;
  #cell: OpenCell | null = null;

  constructor(text: string) {
    this.#text = text;
  }

  read(): Workbook {
    let behind = 0;
    for (const tag of tagsOf(this.#text)) {
      if (tag === null) throw new Error("content.xml is no well-formed XML");
      this.#addText(behind, tag.start);
      behind = tag.end;
      if (!tag.closing) this.#begin(tag);
      if (tag.closing || tag.empty) this.#finish(tag);
    }
    if (this.#open.length > 0) throw new Error("content.xml ends early");
    if (this.#sheets.length === 0) throw new Error("content.xml has no sheet");
    return { sheets: this.#sheets, cells: this.#cells };
  }

  get #place(): string {
    return this.#open.at(-1) ?? "";
  }

  #begin({ name, attributes }: Tag): void {
    const isKnown = this.#skipped === 0 && (within.get(name)?.includes(this.#place) || isInText(name, this.#place));
    this.#open.push(name);
    if (this.#open.length > deepest) throw new Error(`content.xml is nested deeper than ${deepest}`);
    if (!isKnown) this.#skipped += 1;
    else if (name === "table:table") this.#beginSheet(attributes);
    else if (name === "table:table-row") this.#beginRow(attributes);
    else if (cellNames.includes(name)) this.#cell = { attributes, repeated: repeats(attributes, "columns"), text: [], note: [] };
    else if (name === "text:p") this.#lines?.push("");
    else if (name === "text:s") this.#write(" ".repeat(countIn(attributes, "text:c", 1_000)));
    else if (name === "text:tab") this.#write("\t");
    else if (name === "text:line-break") this.#write("\n");
  }

  #finish({ name }: Tag): void {
    if (this.#place !== name) throw new Error(`</${name.slice(0, 100)}> of content.xml closes nothing`);
    this.#open.pop();
    if (this.#skipped > 0) this.#skipped -= 1;
    else if (cellNames.includes(name)) this.#finishCell();
    else if (name === "table:table-row") this.#row += this.#rowsRepeated;
  }

  #beginSheet(attributes: Tag["attributes"]): void {
    this.#sheets.push(attributes.get("table:name") ?? "");
    if (this.#sheets.length > mostSheets) throw new Error(`more than ${mostSheets} sheets`);
    this.#row = 0;
  }

  #beginRow(attributes: Tag["attributes"]): void {
    this.#rowsRepeated = repeats(attributes, "rows");
    this.#column = 0;
    if (this.#row + this.#rowsRepeated > most.rows) throw new Error(`a sheet has more than ${most.rows} rows`);
  }

  /** The lines that text belongs to; null outside of a cell. */
  get #lines(): string[] | null {
    return (this.#open.includes("office:annotation") ? this.#cell?.note : this.#cell?.text) ?? null;
  }

  #addText(from: number, to: number): void {
    if (from === to || this.#skipped > 0 || !this.#open.includes("text:p")) return;
    const text = this.#text.slice(from, to);
    if (text.includes("<")) throw new Error("content.xml has comments or CDATA in a text");
    this.#write(decodeEntities(text));
  }

  #write(text: string): void {
    const lines = this.#lines;
    if (lines !== null) lines[lines.length - 1] += text;
  }

  #finishCell(): void {
    const cell = this.#cell;
    this.#cell = null;
    if (cell === null) return;
    const at = this.#column;
    this.#column += cell.repeated;
    if (this.#column > most.columns) throw new Error(`a sheet has more than ${most.columns} columns`);
    const content = contentOf(cell);
    if (content === null) return;
    if (this.#cells.length + cell.repeated * this.#rowsRepeated > mostCells) throw new Error(`more than ${mostCells} cells with content`);
    const sheet = this.#sheets.at(-1) ?? "";
    for (let row = 0; row < this.#rowsRepeated; row++)
      for (let column = 0; column < cell.repeated; column++)
        this.#cells.push({ sheet, name: `${lettersOf(at + column)}${this.#row + row + 1}`, ...content });
  }
}

/** null: it is empty. */
function contentOf({ attributes, text, note }: OpenCell): Omit<WorkbookCell, "sheet" | "name"> | null {
  const type = attributes.get("office:value-type");
  const formula = attributes.get("table:formula") ?? null;
  const shown = text.join("\n");
  if (type === undefined && formula === null && shown === "" && note.length === 0) return null;
  // LibreOffice marks errors in an attribute of its own, beside an empty text.
  const isError = attributes.get("calcext:value-type") === "error";
  return {
    kind: isError ? "error" : (type ?? (shown === "" ? "empty" : "string")),
    value: isError ? shown : shownValue(type, attributes, shown),
    formula,
    note: note.length === 0 ? null : note.join("\n"),
  };
}

function shownValue(type: string | undefined, attributes: Tag["attributes"], shown: string): number | string | null {
  if (type === "float" || type === "percentage" || type === "currency") {
    const value = attributes.get("office:value") ?? "";
    return /^[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d{1,3})?$/.test(value) ? Number(value) : value;
  }
  if (type === "boolean" || type === "date" || type === "time") return attributes.get(`office:${type}-value`) ?? "";
  if (type === undefined && shown === "") return null;
  return attributes.get("office:string-value") ?? shown;
}

function repeats(attributes: Tag["attributes"], what: keyof typeof most): number {
  return countIn(attributes, `table:number-${what}-repeated`, most[what]);
}

/** 1 where the attribute is missing. */
function countIn(attributes: Tag["attributes"], name: string, largest: number): number {
  const text = attributes.get(name) ?? "1";
  if (!/^[1-9]\d{0,6}$/.test(text) || Number(text) > largest) throw new Error(`${name} is ${text.slice(0, 20)}, and not 1 to ${largest}`);
  return Number(text);
}

/** 0 is A, 26 is AA. */
function lettersOf(column: number): string {
  const last = String.fromCharCode(65 + (column % 26));
  return column < 26 ? last : lettersOf(Math.floor(column / 26) - 1) + last;
}
