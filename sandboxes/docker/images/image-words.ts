import type Docker from "dockerode";
import { imageAt } from "./image-at.ts";

/** What an image says beside its files: the commands that made it, its variables, its labels and how it starts. */
export async function imageWords(docker: Docker, image: string): Promise<string[]> {
  const found = imageAt(docker, image);
  const [{ Config }, history] = await Promise.all([found.inspect(), found.history() as Promise<unknown>]);
  const { Env, Labels, Cmd, Entrypoint } = Config ?? {};
  return textsOf([history, Env, Labels, Cmd, Entrypoint]);
}

function textsOf(value: unknown): string[] {
  if (typeof value === "string") return [value];
  return value === null || typeof value !== "object" ? [] : Object.values(value).flatMap(textsOf);
}
