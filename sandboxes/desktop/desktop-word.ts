/** How a task names Alidade's own images of a screen. */

/** With a browser. */
export const desktopWord = "alidade/desktop";

/** With programs of Debian in the browser's place. The tag of the name is the list of their packages. */
const programs = "alidade/desktop-with:";
/** No package has it in its name, and a tag may. */
const between = "_";

export function desktopWordFor(packages: readonly string[]): string {
  return `${programs}${[...new Set(packages)].sort().join(between)}`;
}

/** [] for the image with a browser; null for the name of another image. */
export function packagesOfDesktop(image: string | null): string[] | null {
  if (image === desktopWord) return [];
  return image?.startsWith(programs) ? image.slice(programs.length).split(between) : null;
}
