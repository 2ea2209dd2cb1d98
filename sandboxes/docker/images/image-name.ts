import { AlidadeError } from "../../../base/errors.ts";
import { type ImageParts, imageParts, wantedImageName } from "../../../base/schema/environment/image-name.ts";

/** As much of a wrong name as a person needs to find it. */
const mostShown = 200;

/** Throws `task_invalid` for what is no name of an image. */
export function parseImageName(name: string): ImageParts {
  const parts = imageParts(name);
  if (parts !== null) return parts;
  const shown = JSON.stringify(name.slice(0, mostShown));
  throw new AlidadeError("task_invalid", `environment.image is ${shown}: write ${wantedImageName}.`, { param: "environment.image" });
}
