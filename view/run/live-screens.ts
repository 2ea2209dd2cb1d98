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

/** The page of a rollout waits for this answer. */
const asksMs = 2_000;
const pictureMs = 25_000;

export class LiveScreens {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Tells whether the session runs in a process that can be asked, and has a screen. */
  async has(sessionId: string): Promise<boolean> {
    try {
      const answer = await this.#ask(sessionId, "", AbortSignal.timeout(asksMs));
      if (!answer?.ok) return false;
      return SessionFacts.parse(tryJson(await answer.text())).has_screen;
    } catch {
      // A process that has just ended, or does not answer: the page says the rest.
      return false;
    }
  }

  /** The screen as PNG. Throws `not_found`. */
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

  /** null: the run's process has no control listener, or its token is the operator's own, which goes to no address of a file. */
  async #ask(sessionId: string, path: string, signal: AbortSignal): Promise<Response | null> {
    const text = await readFile(join(this.#folder, "control.json"), "utf8").catch(() => "");
    const { data: control } = ControlFile.safeParse(tryJson(text));
    if (control === undefined || control.token === null) return null;
    const address = new URL(`/sessions/${encodeURIComponent(sessionId)}${path}`, control.url);
    return fetch(address, { headers: { authorization: `Bearer ${control.token}` }, redirect: "error", signal });
  }
}
