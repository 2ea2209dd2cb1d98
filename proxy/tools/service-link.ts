/** Carries messages to a service: over HTTP to a port (http-link.ts), or over a command's streams (stdio-link.ts). */
export interface ServiceLink extends AsyncDisposable {
  /**
   * Sends a request once, and resolves with the text of its answer. Throws a ToolFault if no answer comes. The service may
   * have received the request even then.
   */
  ask(id: number, message: string, signal: AbortSignal): Promise<string>;
  /** Sends a message that expects no answer. Throws a ToolFault. */
  tell(message: string, signal: AbortSignal): Promise<void>;
  /** Sets the protocol version that later messages state. */
  speaks(version: string): void;
}
