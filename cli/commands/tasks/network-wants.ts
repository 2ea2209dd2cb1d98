/** Which tasks want more of the network than they get without a flag. Read in their own files alone. */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { NetworkAccess } from "../../../base/schema/network.ts";
import type { Task } from "../../../base/schema/task.ts";
import { fetchingScripts } from "../../../graders/harbor/index.ts";
import type { Grader } from "../../../graders/index.ts";
import { HarborSpec, withParts } from "../../../graders/index.ts";

export type NetworkWant = { task_id: string; flag: "--allow-public-network" | "--verifier-network"; why: string };

export async function networkWants(task: Task, graders?: readonly Grader[]): Promise<NetworkWant[]> {
  const { task_id, environment } = task;
  const isPublic = environment.network === "public" || environment.setup?.network === "public";
  const whole = { task_id, flag: "--allow-public-network", why: "its agent or set-up reaches the whole public network" } as const;
  const why = await whyTests(task, graders);
  return [...(isPublic ? [whole] : []), ...(why === null ? [] : [{ task_id, flag: "--verifier-network", why } as const])];
}

/** Why its tests want a network beyond what the task gives them; null: they do not, as far as can be read. */
async function whyTests({ environment, grader }: Task, graders?: readonly Grader[]): Promise<string | null> {
  if (environment.grading_network === "public") return "its tests reach the whole public network";
  const found = await Promise.all(withParts(grader, graders).map(({ spec }) => toolsOf(spec, environment.grading_network)));
  const tools = [...new Set(found.flat())];
  return tools.length === 0 ? null : `its tests run ${tools.join(", ")} and reach nothing`;
}

async function toolsOf(spec: unknown, ofTask: NetworkAccess): Promise<string[]> {
  const { data } = HarborSpec.safeParse(spec);
  if (data === undefined) return [];
  const reached = data.verifier?.environment.grading_network ?? ofTask;
  if (reached !== "none") return [];
  const folders = [data.tests, data.step_tests].filter((folder) => folder !== null);
  return fetchingScripts((await Promise.all(folders.map(scriptsIn))).flat()).tools;
}

async function scriptsIn(folder: string): Promise<{ path: string; content: Buffer }[]> {
  const names = (await readdir(folder, { withFileTypes: true })).filter((one) => one.isFile() && one.name.endsWith(".sh"));
  return Promise.all(names.map(async ({ name }) => ({ path: name, content: await readFile(join(folder, name)) })));
}

/** Tasks that are named in a sentence; the JSON has all. */
const named = 5;

/** One sentence a flag and reason. */
export function wantsInWords(wants: readonly NetworkWant[]): string[] {
  return [...Map.groupBy(wants, ({ flag, why }) => `${why}: ${cures[flag]}`)].map(([words, all]) => {
    const more = all.length - named;
    const ids = all.slice(0, named).map(({ task_id }) => task_id);
    return `${[...ids, ...(more > 0 ? [`${more} more`] : [])].join(", ")}: ${words}`;
  });
}

const cures: Record<NetworkWant["flag"], string> = {
  "--allow-public-network": "pass --allow-public-network",
  "--verifier-network": "pass --verifier-network public, or names of hosts",
};
