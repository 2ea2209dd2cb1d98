/** What fails outside of every promise that is awaited would end a process; the test runner only mentions it. */
import type { TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

/** Streams say their errors some turns later. */
const laterMs = 100;

/** Returns what asks for the messages of all that came up since. */
export function strayErrors(t: TestContext): () => Promise<string[]> {
  const found: string[] = [];
  const note = (error: unknown): void => void found.push(String(error));
  process.on("uncaughtException", note).on("unhandledRejection", note);
  t.after(() => process.off("uncaughtException", note).off("unhandledRejection", note));
  return async () => {
    await sleep(laterMs);
    return found;
  };
}
