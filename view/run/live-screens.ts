/**
 * Fetches the screens of running rollouts from the control listener of the run's process (`alidade run --control-port`). Its
 * address and token are in `control.json` of the run's folder while it runs.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { AlidadeError, messageOf } from "../../base/errors.ts";
import { readPicture } from "../../base/media/read-picture.ts";
import { tryJson } from "../../base/schema/read-json.ts";

const ControlFile = z.strictObject({ url: z.url({ protocol: /^http$/, hostname: /^127\.0\.0\.1$/ }), token: z.string().nullable() });
const SessionFacts = z.looseObject({ has_screen: z.boolean() });

/** Short, because the page of a rollout waits for this answer. */
const asksMs = 2_000;
const pictureMs = 25_000;

export class LiveScreens {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** True if the session has a screen, and runs in a process with a control listener. */
  async has(sessionId: string): Promise<boolean> {
    try {
      const answer = await this.#ask(sessionId, "", AbortSignal.timeout(asksMs));
      if (!answer?.ok) return false;
      return SessionFacts.parse(tryJson(await answer.text())).has_screen;
    } catch {
      // The process has just ended, or does not answer. The page is shown without the screen.
      return false;
    }
  }

  /** Returns the screen as PNG. Throws `not_found`. */
  async frame(sessionId: string, signal: AbortSignal): Promise<Buffer> {
    const answer = await this.#ask(sessionId, "/screen", AbortSignal.any([signal, AbortSignal.timeout(pictureMs)])).catch(
      (error: unknown) => {
        throw new AlidadeError("not_found", `the run no longer shows its screens: ${messageOf(error)}`);
      },
    );
    if (answer === null) throw new AlidadeError("not_found", "no process shows screens of this run: start it with --control-port");
    const bytes = Buffer.from(await answer.arrayBuffer());
    if (!answer.ok || readPicture(bytes)?.kind !== "image/png")
      throw new AlidadeError("not_found", `the screen of session "${sessionId.slice(0, 200)}" is not there: its rollout may be over`);
    return bytes;
  }

  /**
   * Returns null if the run's process has no control listener, or if the operator set its token. Such a token is not sent to an
   * address that is read from a file.
   */
  async #ask(sessionId: string, path: string, signal: AbortSignal): Promise<Response | null> {
    const text = await readFile(join(this.#folder, "control.json"), "utf8").catch(() => "");
    const { data: control } = ControlFile.safeParse(tryJson(text));
    if (control === undefined || control.token === null) return null;
    const address = new URL(`/sessions/${encodeURIComponent(sessionId)}${path}`, control.url);
    return fetch(address, { headers: { authorization: `Bearer ${control.token}` }, redirect: "error", signal });
  }
}
