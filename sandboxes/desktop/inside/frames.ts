/** Reads the picture of the screen from the file into which the screen's server draws. Nothing is asked of a process for it. */
import { type FileHandle, open } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { encodePng } from "./png.ts";

/** `pixels`: rows of blue, green, red and an unused byte. */
export type Frame = { width: number; height: number; pixels: Buffer };

/** A page begins to draw some milliseconds after a click. Two equal frames before that would show the page of before. */
const restMs = 50;
/** A screen that moves all the time is not waited for longer. */
const longestMs = 1_200;

/** Numbers of the header of an XWD file. */
const field = { headerBytes: 0, width: 4, height: 5, bitsPerPixel: 11, bytesPerLine: 12, colours: 19 };
const headerFields = 25;
const colourBytes = 12;

export class Frames {
  readonly #file: FileHandle;
  readonly #start: number;
  readonly #bytesPerLine: number;
  readonly width: number;
  readonly height: number;

  private constructor(file: FileHandle, header: Buffer) {
    const number = (index: number): number => header.readUInt32BE(index * 4);
    if (number(field.bitsPerPixel) !== 32) throw new Error("the screen has another depth than 24 bits");
    this.#file = file;
    this.#start = number(field.headerBytes) + number(field.colours) * colourBytes;
    this.#bytesPerLine = number(field.bytesPerLine);
    this.width = number(field.width);
    this.height = number(field.height);
  }

  static async open(path: string): Promise<Frames> {
    const file = await open(path, "r");
    const header = Buffer.alloc(headerFields * 4);
    await file.read(header, 0, header.length, 0);
    return new Frames(file, header);
  }

  async now(): Promise<Frame> {
    const { width, height } = this;
    const pixels = Buffer.allocUnsafe(this.#bytesPerLine * height);
    const { bytesRead } = await this.#file.read(pixels, 0, pixels.length, this.#start);
    if (bytesRead !== pixels.length) throw new Error("the screen has no whole picture");
    return { width, height, pixels };
  }

  /** The picture after two equal frames in a row, or the last one in time. */
  async settled(): Promise<Frame> {
    const end = performance.now() + longestMs;
    await sleep(restMs);
    for (let last = await this.now(); ; ) {
      await sleep(restMs);
      const next = await this.now();
      if (next.pixels.equals(last.pixels) || performance.now() >= end) return next;
      last = next;
    }
  }

  close(): Promise<void> {
    return this.#file.close();
  }
}

export function pngOf({ width, height, pixels }: Frame): Promise<Buffer> {
  return encodePng(width, height, pixels);
}
