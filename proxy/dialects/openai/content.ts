/** Content of OpenAI's two conversation APIs: a string, or a list of parts. The part types differ in name only. */
import { z } from "zod";
import type { ContentPart } from "../../../base/schema/message.ts";
import { AnyText, checked, invalid } from "../edge.ts";

/** Throws `request_invalid` naming the part; `at` is the path of the content in the body. */
export function parseContent(content: unknown, at: string): ContentPart[] {
  if (content === null || content === undefined) return [];
  if (typeof content === "string") return textParts(content);
  if (!Array.isArray(content)) throw invalid(at, `expected a string or a list of parts, received ${typeof content}`);
  return content.flatMap((part: unknown, index) => parsePart(part, `${at}[${index}]`));
}

const WirePart = z.looseObject({ type: z.string() });
const Text = z.looseObject({ text: z.string() });
const ImageUrl = z.looseObject({ url: z.string(), detail: z.string().nullish() });
const InputImage = z.looseObject({ image_url: z.string(), detail: z.string().nullish() });

export function parsePart(value: unknown, at: string): ContentPart[] {
  const part = checked(WirePart, value, at);
  switch (part.type) {
    case "text":
    case "input_text":
    case "output_text":
      return textParts(checked(Text, part, at).text);
    case "refusal":
      return textParts(checked(AnyText, part.refusal, `${at}.refusal`));
    case "image_url": {
      const image = checked(ImageUrl, typeof part.image_url === "string" ? { url: part.image_url } : part.image_url, `${at}.image_url`);
      return [imagePart(image.url, image.detail)];
    }
    case "input_image":
    case "computer_screenshot": {
      if (typeof part.file_id === "string" && typeof part.image_url !== "string")
        throw invalid(`${at}.file_id`, "files are not kept here; send the image itself as a `data:` URL in `image_url`");
      const image = checked(InputImage, part, at);
      return [imagePart(image.image_url, image.detail)];
    }
    default:
      throw invalid(`${at}.type`, `content of type "${part.type}" is not supported; text and images are`);
  }
}

function imagePart(url: string, detail: string | null | undefined): ContentPart {
  return { type: "image", url, ...(detail && { detail }) };
}

/** Empty text is no part: `null`, `""` and an empty list say the same. */
export function textParts(text: string): ContentPart[] {
  return text === "" ? [] : [{ type: "text", text }];
}
