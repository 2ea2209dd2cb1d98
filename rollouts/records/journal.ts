/**
 * What a verb finds out about a finished run, in a file of the run's folder until it is part of the run's records. A process that
 * is broken off leaves the run as it was, and the same command goes on where the file ends.
 */
import { rm } from "node:fs/promises";
import { readJson } from "../../base/schema/read-json.ts";
import { Appender, type LinePlace, readJsonLines, readLine } from "../../proxy/store/index.ts";

/** How entries are read and told apart. Of two with one key the last counts. */
export type JournalForm<Entry> = { parse(value: unknown): Entry; keyOf(entry: Entry): string };

/** Entries stay on the disk: those of a run may be larger than memory. */
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

  /** An entry that an earlier process or this one added; null: there is none. */
  async read(key: string): Promise<Entry | null> {
    const place = this.#places.get(key);
    return place === undefined ? null : this.#form.parse(readJson((await readLine(this.#file, place)).toString("utf8")));
  }

  async add(entry: Entry): Promise<void> {
    const line = `${JSON.stringify(entry)}\n`;
    // Both are taken before the wait: entries may be added side by side.
    const place = { number: this.#places.size + 1, offset: this.#lines.size, bytes: Buffer.byteLength(line) };
    await this.#lines.append(line);
    this.#places.set(this.#form.keyOf(entry), place);
  }

  /** Once all of it is part of the run. */
  async remove(): Promise<void> {
    await rm(this.#file, { force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#lines[Symbol.asyncDispose]();
  }
}
