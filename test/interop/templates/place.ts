/** The chat templates that packages carry, where `install.sh` put them, and a process that renders them as transformers does. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { createInterface } from "node:readline";
import { cachePlace, hashOf, isReady } from "../place.ts";

const scripts = import.meta.dirname;

export type Template = { name: string; origin: string; source: string };

export type Rendering = { messages: unknown[]; tools: unknown[] | null; generation: boolean };

/** Computed as install.sh does. */
function place(): string {
  return cachePlace("templates", hashOf(scripts, ["requirements.txt", "install.sh"]));
}

/** null when they are here. */
export async function templatesMissing(): Promise<string | null> {
  return isReady(place()) ? null : "the chat templates of the pinned packages are not here";
}

/** Every different one, by origin and name. */
export function chatTemplates(): Template[] {
  const seen = new Set<string>();
  return ["llama-cpp", "trl"].flatMap((origin) => {
    const folder = join(place(), "found", origin);
    return readdirSync(folder)
      .sort()
      .map((file) => ({ name: basename(file, ".jinja"), origin, source: readFileSync(join(folder, file), "utf8") }))
      .filter(({ source }) => !seen.has(source.trim()) && seen.add(source.trim()));
  });
}

/** Renders with the template; throws what the template raises. One question at a time. */
export class TemplateRenderer implements AsyncDisposable {
  readonly #child = spawn("python3", [join(scripts, "render.py")], {
    stdio: ["pipe", "pipe", "inherit"],
    env: { ...process.env, PYTHONPATH: join(place(), "python") },
  });
  readonly #lines = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]();

  async render(template: Template, rendering: Rendering): Promise<string> {
    this.#child.stdin.write(`${JSON.stringify({ template: template.source, ...rendering })}\n`);
    const { value, done } = await this.#lines.next();
    if (done) throw new Error("the renderer ended");
    const { text, error } = JSON.parse(value) as { text?: string; error?: string };
    if (text === undefined) throw new Error(error);
    return text;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.stdin.end();
    if (this.#child.exitCode === null) await once(this.#child, "exit");
  }
}
