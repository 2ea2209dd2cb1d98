/** Helm's own code and Kubernetes' schemas, in Python: the pinned versions of requirements.txt, made by install.sh. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { cachePlace, hashOf, isReady } from "../place.ts";

function helmPlace(): string {
  return cachePlace("helm", hashOf(import.meta.dirname, ["requirements.txt"]));
}

/** null when it is installed, otherwise why not. */
export async function helmMissing(): Promise<string | null> {
  return isReady(helmPlace()) ? null : "Helm's code of the pinned version is not installed";
}

/** What render.py says of a chart with these values. */
export async function rendered(chart: string, kubernetes: string, values: unknown): Promise<unknown> {
  const args = [join(import.meta.dirname, "render.py"), chart, kubernetes];
  const python = spawn(join(helmPlace(), "venv/bin/python"), args, { stdio: ["pipe", "pipe", "pipe"] });
  const ended = once(python, "close");
  python.stdin.end(JSON.stringify(values));
  const [said, problems] = await Promise.all([text(python.stdout), text(python.stderr), ended]);
  if (python.exitCode !== 0) throw new Error(problems);
  return JSON.parse(said);
}
