import type Docker from "dockerode";
import { asAlidadeError } from "../../../base/errors.ts";
import { isNotFound } from "../client.ts";
import { imageAt } from "./image-at.ts";

/** Throws `sandbox_unavailable` for an engine that does not answer. */
export async function hasImage(docker: Docker, image: string): Promise<boolean> {
  try {
    await imageAt(docker, image).inspect();
    return true;
  } catch (error) {
    if (isNotFound(error)) return false;
    throw asAlidadeError(error, "sandbox_unavailable", `Asking the Docker engine for image ${image}: `);
  }
}
