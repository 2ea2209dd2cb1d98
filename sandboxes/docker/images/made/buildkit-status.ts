/**
 * BuildKit says what it does in protocol buffers (`moby.buildkit.v1.StatusResponse`): of them the steps that begin or fail
 * and what commands print. https://github.com/moby/buildkit/blob/master/api/services/control/control.proto
 */

/** Fields of StatusResponse. */
const vertex = 1;
const log = 3;
/** Fields of Vertex and of VertexLog. */
const vertexName = 3;
const vertexStarted = 5;
const vertexCompleted = 6;
const vertexError = 7;
const logText = 4;

/** "" for what is no such message. */
export function statusLines(message: Buffer): string {
  let text = "";
  for (const { field, bytes } of fieldsOf(message)) {
    if (field === vertex) text += stepLine(new Map(fieldsOf(bytes).map((one) => [one.field, one.bytes])));
    if (field === log)
      text +=
        fieldsOf(bytes)
          .find((one) => one.field === logText)
          ?.bytes.toString("utf8") ?? "";
  }
  return text;
}

function stepLine(step: Map<number, Buffer>): string {
  const error = step.get(vertexError);
  if (error !== undefined) return `ERROR: ${error.toString("utf8")}\n`;
  const name = step.get(vertexName)?.toString("utf8") ?? "";
  // Others are the builder's own: exporting, copying the context.
  const isBegun = step.has(vertexStarted) && !step.has(vertexCompleted);
  return isBegun && name.startsWith("[") && !name.startsWith("[internal]") ? `${name}\n` : "";
}

type Field = { field: number; bytes: Buffer };

/** The fields that are texts or messages; numbers are passed over. */
function fieldsOf(message: Buffer): Field[] {
  const fields: Field[] = [];
  let at = 0;
  const number = (): number => {
    let value = 0;
    for (let scale = 1; at < message.length; scale *= 128) {
      const byte = message[at++] ?? 0;
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) break;
    }
    return value;
  };
  while (at < message.length) {
    const key = number();
    const wire = key % 8;
    if (wire === 0) number();
    else if (wire === 1) at += 8;
    else if (wire === 5) at += 4;
    else if (wire === 2) {
      const length = number();
      fields.push({ field: Math.floor(key / 8), bytes: message.subarray(at, at + length) });
      at += length;
    } else return fields;
  }
  return fields;
}
