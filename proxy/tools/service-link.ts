/** How messages reach a service: over HTTP to a port (http-link.ts), or over a command's streams (stdio-link.ts). */
export interface ServiceLink extends AsyncDisposable {
  /**
   * Sends a request once, and resolves with the text of its answer. Throws a ToolFault where there is none: the request may
   * have arrived all the same.
   */
  ask(id: number, message: string, signal: AbortSignal): Promise<string>;
  /** Sends what has no answer. Throws a ToolFault. */
  tell(message: string, signal: AbortSignal): Promise<void>;
  /** Goes into what is sent after the first answer. */
  speaks(version: string): void;
}
