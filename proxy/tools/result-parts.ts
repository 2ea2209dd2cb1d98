/** A result as the harness gets it, and what the log keeps of it. */
import { hash } from "node:crypto";
import type { ResultPart } from "../../base/schema/session-log.ts";
import { jsonMembers } from "../../base/wire/json-members.ts";
import type { ToolContent } from "./mcp.ts";

/** A screen has one picture, a page of a search fifty pieces of text. */
const mostParts = 1_000;

/**
 * The result without its `structuredContent` where it holds a picture: Claude Code shows the model that alone, and no
 * picture. Everything else is as the service wrote it.
 */
export function resultForHarness(result: string, { content }: ToolContent): string {
  if (!content.some(({ type }) => type === "image")) return result;
  const members = jsonMembers(result);
  if (!members.delete("structuredContent")) return result;
  return `{${[...members].map(([key, value]) => `${JSON.stringify(key)}:${value}`).join(",")}}`;
}

export function partsOf({ content }: ToolContent): ResultPart[] {
  return content.slice(0, mostParts).map((part) => {
    const type = part.type.slice(0, 100);
    const { text, data, mimeType } = part;
    if (typeof data !== "string") return { type, bytes: Buffer.byteLength(typeof text === "string" ? text : JSON.stringify(part)) };
    const bytes = Buffer.from(data, "base64");
    return {
      type,
      bytes: bytes.length,
      ...(typeof mimeType === "string" && { media_type: mimeType.slice(0, 200) }),
      sha256: hash("sha256", bytes),
    };
  });
}
