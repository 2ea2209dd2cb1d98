/** Reads pictures of a record as bytes of a fixed type. SVG is refused, because it can hold programs. */

/** Finds the type from the first bytes only. The agent wrote the type in the data URL, so that is not trusted. */
const signatures: [type: string, bytes: string][] = [
  ["image/png", "89504e470d0a1a0a"],
  ["image/jpeg", "ffd8ff"],
  ["image/gif", "474946383761"],
  ["image/gif", "474946383961"],
];

const dataUrl = /^data:image\/(?:png|jpeg|jpg|gif|webp);base64,/;

export type Picture = { type: string; bytes: () => Buffer };

/** null: not a picture that pages show. */
export function pictureOf(url: string): Picture | null {
  const head = dataUrl.exec(url.slice(0, 40))?.[0];
  if (head === undefined) return null;
  const start = Buffer.from(url.slice(head.length, head.length + 24), "base64");
  const isWebp = start.subarray(0, 4).toString("latin1") === "RIFF" && start.subarray(8, 12).toString("latin1") === "WEBP";
  const type = isWebp ? "image/webp" : signatures.find(([, bytes]) => start.toString("hex").startsWith(bytes))?.[0];
  return type === undefined ? null : { type, bytes: () => Buffer.from(url.slice(head.length), "base64") };
}
