/**
 * Keeps the results of a command over a finished run in a file of its folder, until they are part of its records. A process that is cut
 * off leaves the run as it was. The same command then goes on where the file ends.
 */
import { rm } from "node:fs/promises";
import { readJson } from "../../base/schema/read-json.ts";
import { Appender, type LinePlace, readJsonLines, readLine } from "../../proxy/store/index.ts";

/** How entries are parsed and identified. If two entries have the same key, the last one counts. */
export type JournalForm<Entry> = { parse(value: unknown): Entry; keyOf(entry: Entry): string };

/** Keeps entries on the disk, because all entries of a run may exceed the memory. */
export class Journal<Entry> implements AsyncDisposable {
  readonly #file: string;
  readonly #form: JournalForm<Entry>;
  readonly #lines: Appender;
  readonly #places: Map<string, LinePlace>;

  private constructor(file: string, form: JournalForm<Entry>, lines: Appender, places: Map<string, LinePlace>) {
    this.#file = file;
    this.#form = form;
    this.#lines = lines;
    this.#places = places;
  }

  static async open<Entry>(file: string, form: JournalForm<Entry>): Promise<Journal<Entry>> {
    const places = new Map<string, LinePlace>();
    const placed = readJsonLines(file, (value, place) => ({ key: form.keyOf(form.parse(value)), place }));
    for await (const { key, place } of placed) places.set(key, place);
    return new Journal(file, form, await Appender.open(file), places);
  }

  has(key: string): boolean {
    return this.#places.has(key);
  }

  /** Returns an entry that this process or an earlier one added; null: there is none. */
  async read(key: string): Promise<Entry | null> {
    const place = this.#places.get(key);
    return place === undefined ? null : this.#form.parse(readJson((await readLine(this.#file, place)).toString("utf8")));
  }

  async add(entry: Entry): Promise<void> {
    const line = `${JSON.stringify(entry)}\n`;
    // Read both values before the wait, because entries may be added side by side.
    const place = { number: this.#places.size + 1, offset: this.#lines.size, bytes: Buffer.byteLength(line) };
    await this.#lines.append(line);
    this.#places.set(this.#form.keyOf(entry), place);
  }

  /** Call it once all entries are part of the run. */
  async remove(): Promise<void> {
    await rm(this.#file, { force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#lines[Symbol.asyncDispose]();
  }
}
