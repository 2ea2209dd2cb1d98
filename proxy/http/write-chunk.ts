/** A piece of a streamed answer as one chunk of HTTP, in one write. */
import type { ServerResponse } from "node:http";

/**
 * `response.write` makes four writes of it and joins them a tick later: where every token is a piece, that costs more
 * than all else that is done to a token. The headers must be out.
 */
export function writeChunk(response: ServerResponse, text: string): void {
  const { socket } = response;
  // HTTP/1.0 knows no chunks, and an answer without a socket waits behind an earlier one of its connection.
  if (response.chunkedEncoding && socket?.writable && text !== "") socket.write(`${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`);
  else response.write(text);
}
