import type Docker from "dockerode";
import { parseImageName } from "./image-name.ts";

/**
 * An image of the engine by its name or content id. Throws `task_invalid` for any other text: it becomes part of a request's
 * path as it is.
 */
export function imageAt(docker: Docker, name: string): Docker.Image {
  parseImageName(name);
  return docker.getImage(name);
}
