/** What kind of picture bytes are, and its size, by its head alone. Nothing is decoded: the bytes are a stranger's. */

export type PictureKind = "image/png" | "image/jpeg" | "image/gif" | "image/webp";

export type PictureFacts = { kind: PictureKind; width: number; height: number };

/** A JPEG may hold a profile and a preview before its size. Bytes whose size stands further behind are no picture to us. */
const maxJpegHead = 1024 * 1024;

/** null: none of the kinds that models and pages read. SVG is none: it can hold programs. */
export function readPicture(bytes: Buffer): PictureFacts | null {
  const facts = png(bytes) ?? jpeg(bytes) ?? gif(bytes) ?? webp(bytes);
  return facts !== null && facts.width > 0 && facts.height > 0 ? facts : null;
}

function png(bytes: Buffer): PictureFacts | null {
  if (bytes.length < 24 || bytes.toString("hex", 0, 8) !== "89504e470d0a1a0a" || bytes.toString("latin1", 12, 16) !== "IHDR") return null;
  return { kind: "image/png", width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) };
}

function gif(bytes: Buffer): PictureFacts | null {
  const name = bytes.toString("latin1", 0, 6);
  if (bytes.length < 10 || (name !== "GIF87a" && name !== "GIF89a")) return null;
  return { kind: "image/gif", width: bytes.readUInt16LE(6), height: bytes.readUInt16LE(8) };
}

/** The size stands in the frame's header, behind segments that each say their length. */
function jpeg(bytes: Buffer): PictureFacts | null {
  if (bytes.length < 4 || bytes.readUInt16BE(0) !== 0xffd8) return null;
  const end = Math.min(bytes.length, maxJpegHead);
  for (let at = 2; at + 9 <= end; ) {
    if (bytes[at] !== 0xff) return null;
    const marker = bytes[at + 1] as number;
    // Fill bytes may stand before a marker.
    if (marker === 0xff) at += 1;
    else if (isFrame(marker)) return { kind: "image/jpeg", width: bytes.readUInt16BE(at + 7), height: bytes.readUInt16BE(at + 5) };
    else if (marker === 0xda || marker === 0xd9) return null;
    else {
      const length = bytes.readUInt16BE(at + 2);
      if (length < 2) return null;
      at += 2 + length;
    }
  }
  return null;
}

/** SOF0 to SOF15; three numbers among them are other segments. */
function isFrame(marker: number): boolean {
  return marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc;
}

function webp(bytes: Buffer): PictureFacts | null {
  if (bytes.length < 30 || bytes.toString("latin1", 0, 4) !== "RIFF" || bytes.toString("latin1", 8, 12) !== "WEBP") return null;
  const kind = "image/webp";
  switch (bytes.toString("latin1", 12, 16)) {
    case "VP8 ":
      return { kind, width: bytes.readUInt16LE(26) & 0x3fff, height: bytes.readUInt16LE(28) & 0x3fff };
    case "VP8L": {
      const bits = bytes.readUInt32LE(21);
      return { kind, width: (bits & 0x3fff) + 1, height: ((bits >> 14) & 0x3fff) + 1 };
    }
    case "VP8X":
      return { kind, width: bytes.readUIntLE(24, 3) + 1, height: bytes.readUIntLE(27, 3) + 1 };
    default:
      return null;
  }
}
