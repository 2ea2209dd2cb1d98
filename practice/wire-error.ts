/** A refusal in vLLM's shape. */
const types: Record<number, string> = { 400: "BadRequestError", 404: "NotFoundError", 413: "BadRequestError" };

export class WireError extends Error {
  readonly status: number;
  readonly param: string | null;

  constructor(status: number, message: string, param: string | null = null) {
    super(message);
    this.status = status;
    this.param = param;
  }

  toJSON(): { error: { message: string; type: string; param: string | null; code: number } } {
    const type = types[this.status] ?? "InternalServerError";
    return { error: { message: this.message, type, param: this.param, code: this.status } };
  }
}
