/** Makes the result that the harness gets, and the parts that the log keeps. */
import { hash } from "node:crypto";
import type { ResultPart } from "../../base/schema/log/tool-entries.ts";
import { jsonMembers } from "../../base/wire/json-members.ts";
import type { ToolContent } from "./mcp.ts";

/** Far above real results: a screenshot is one part, a page of search results about fifty. */
const mostParts = 1_000;

/**
 * Removes `structuredContent` from a result that holds a picture. Claude Code would show the model only
 * `structuredContent`, without the picture. Everything else stays as the service wrote it.
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
