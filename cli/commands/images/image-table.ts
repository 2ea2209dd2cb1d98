/** Images as `alidade images` prints them: one a line, with sizes and ages for people. */
import type { StoredImage } from "../../../sandboxes/index.ts";
import { table } from "../../../view/text/index.ts";

export function tableOf(found: StoredImage[]): string {
  return table(
    ["image", "kind", "id", "size", "made", "last used", "tasks", "runs", "in use by"],
    found.map((image) => [
      image.names.join(" ") || null,
      image.kind,
      shortId(image.id),
      sizeText(image.bytes),
      ageText(image.created),
      image.last_used === null ? null : ageText(image.last_used),
      someOf(image.tasks),
      someOf(image.runs),
      image.in_use,
    ]),
  );
}

export function nameOf(image: StoredImage): string {
  return `${image.names[0] ?? shortId(image.id)} (${sizeText(image.bytes)}, last used ${ageText(image.last_used ?? image.created)} ago)`;
}

export function shortId(id: string): string {
  return id.replace(/^sha256:/, "").slice(0, 12);
}

/** The last three. */
function someOf(words: string[]): string | null {
  const more = words.length > 3 ? ` and ${words.length - 3} more` : "";
  return words.length === 0 ? null : `${words.slice(-3).join(", ")}${more}`;
}

export function sizeText(bytes: number): string {
  return bytes >= 1e9 ? `${(bytes / 1e9).toFixed(2)} GB` : `${(bytes / 1e6).toFixed(1)} MB`;
}

function ageText(time: number): string {
  const minutes = Math.max(0, Math.round((Date.now() - time) / 60_000));
  if (minutes < 120) return `${minutes} min`;
  return minutes < 48 * 60 ? `${Math.round(minutes / 60)} h` : `${Math.round(minutes / 1440)} days`;
}
