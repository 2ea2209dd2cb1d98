/** OpenDocument workbooks as LibreOffice writes them, and archives that it does not write. */
import { crc32, deflateRawSync } from "node:zlib";

export type ZipPart = { name: string; content: Buffer; isStored?: boolean; size?: number; crc?: number; flags?: number; method?: number };

const kind = "application/vnd.oasis.opendocument.spreadsheet";

/** `sheets`: the XML within office:spreadsheet. */
export function workbook(sheets: string): Buffer {
  return workbookOf(contentXml(sheets));
}

export function workbookOf(content: string | Buffer, others: ZipPart[] = []): Buffer {
  return zipOf([
    { name: "mimetype", content: Buffer.from(kind), isStored: true },
    { name: "content.xml", content: Buffer.from(content) },
    ...others,
  ]);
}

export function contentXml(sheets: string): string {
  return `<?xml version="1.0" encoding="UTF-8"?><office:document-content office:version="1.3"><office:body><office:spreadsheet>${sheets}</office:spreadsheet></office:body></office:document-content>`;
}

export function sheet(name: string, ...rows: string[]): string {
  return `<table:table table:name="${name}"><table:table-column/>${rows.map((cells) => `<table:table-row>${cells}</table:table-row>`).join("")}</table:table>`;
}

export const text = (value: string): string => `<table:table-cell office:value-type="string"><text:p>${value}</text:p></table:table-cell>`;
export const number = (value: number, formula = ""): string =>
  `<table:table-cell${formula && ` table:formula="${formula}"`} office:value-type="float" office:value="${value}"><text:p>${value}</text:p></table:table-cell>`;

export function zipOf(parts: ZipPart[]): Buffer {
  const files: Buffer[] = [];
  const listed: Buffer[] = [];
  let at = 0;
  for (const {
    name,
    content,
    isStored = false,
    size = content.length,
    crc = crc32(content),
    flags = 0,
    method = isStored ? 0 : 8,
  } of parts) {
    const packed = isStored ? content : deflateRawSync(content);
    const facts = Buffer.alloc(24);
    facts.writeUInt16LE(20, 0);
    facts.writeUInt16LE(flags, 2);
    facts.writeUInt16LE(method, 4);
    facts.writeUInt32LE(crc, 10);
    facts.writeUInt32LE(packed.length, 14);
    facts.writeUInt32LE(size, 18);
    facts.writeUInt16LE(name.length, 22);
    files.push(Buffer.from("PK\x03\x04"), facts, Buffer.alloc(2), Buffer.from(name), packed);
    const rest = Buffer.alloc(16);
    rest.writeUInt32LE(at, 12);
    listed.push(Buffer.from("PK\x01\x02\x14\x00"), facts, rest, Buffer.from(name));
    at += 30 + name.length + packed.length;
  }
  const list = Buffer.concat(listed);
  const end = Buffer.alloc(18);
  end.writeUInt16LE(parts.length, 4);
  end.writeUInt16LE(parts.length, 6);
  end.writeUInt32LE(list.length, 8);
  end.writeUInt32LE(at, 12);
  return Buffer.concat([...files, list, Buffer.from("PK\x05\x06"), end]);
}
