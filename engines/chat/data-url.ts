/** An image that travels inside its own URL, as harnesses send what they have read from a disk. */

/** null: the URL points to the image. */
export function readImageUrl(url: string): { mediaType: string; base64: string } | null {
  const [, mediaType, base64] = /^data:(image\/[\w.+-]+);base64,(.*)$/s.exec(url) ?? [];
  return mediaType === undefined || base64 === undefined ? null : { mediaType, base64 };
}
