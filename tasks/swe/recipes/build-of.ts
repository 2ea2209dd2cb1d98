/**
 * Writes what a recipe builds from: a folder of the cache with a Dockerfile and two scripts. A row's own text goes into the scripts
 * only. So a row cannot add an instruction to the Dockerfile.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { cached } from "../../../base/host/cache-folder.ts";
import { Limiter } from "../../../base/host/limiter.ts";
import type { Build } from "../../../base/schema/environment/build.ts";
import { hashOf } from "../../../base/schema/ids.ts";
import { taskError } from "../../task-error.ts";
import type { LoadOptions } from "../../task-format.ts";
import { quoted } from "../published-task.ts";
import { historyUntil, mirrorOf } from "./mirror.ts";
import type { Recipe } from "./recipe.ts";

/** Ten times the longest script of SWE-rebench. */
const longestScript = 100_000;

const dockerfile = "Dockerfile";
/** The mirror's folder is copied here during the build, and removed again. */
const copied = "/alidade-repository.git";

/** Limits copies at once: all rows of a set load together, and each copy starts git and uses the disk. */
const copies = new Limiter(4);

/** `workdir`: the repository's place in the image. Throws `task_invalid` for a commit that the mirror does not have. */
export async function buildOf(recipe: Recipe, workdir: string, where: string, options: LoadOptions): Promise<Build> {
  if (recipe.install.length > longestScript)
    throw taskError(where, "install_config", `has ${recipe.install.length} characters of commands: at most ${longestScript} are run`);
  const mirror = await mirrorOf(recipe.repo, options.repositories ?? null);
  const files = filesOf(recipe, workdir, mirror !== null);
  // The hash names the repository, because with a mirror no file does.
  const context = await cached(`recipes/${hashOf({ ...files, repository: recipe.repo }).slice(0, 32)}`, async (folder) => {
    for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
    // The Dockerfile copies this folder, so it must exist, also without a mirror.
    await mkdir(join(folder, "repository"));
    const to = join(folder, "repository");
    if (mirror !== null) await copies.run(options.signal, () => historyUntil(recipe.commit, mirror, to, where, options.signal));
  });
  return { context, dockerfile, args: {} };
}

/** Ordered so that instances of one repository share all layers except the last. */
function filesOf({ base, repo, commit, install }: Recipe, workdir: string, isCopied: boolean): Record<string, string> {
  const lines = [
    ...base,
    'SHELL ["/bin/bash", "-c"]',
    `COPY repository ${copied}`,
    `RUN git clone -q -o origin ${isCopied ? copied : `https://github.com/${repo}`} ${workdir} && rm -rf ${copied}`,
    `WORKDIR ${workdir}`,
    "COPY at-commit.sh install.sh /alidade-recipe/",
    "RUN bash /alidade-recipe/at-commit.sh && bash /alidade-recipe/install.sh && rm -rf /alidade-recipe",
  ];
  return { [dockerfile]: `${lines.join("\n")}\n`, "at-commit.sh": atCommit(commit, workdir), "install.sh": install };
}

/** Does what the sets do. Fetches the commit if it is missing: a clone kept from an earlier build may be too old. */
function atCommit(commit: string, workdir: string): string {
  return `set -e
git cat-file -e ${commit}^{commit} 2>/dev/null || git fetch -q origin ${commit}
git reset -q --hard ${commit}
git remote remove origin
chmod -R 777 ${quoted(workdir)}
`;
}
