/** Reports variables with our prefix that no option reads: a misspelt one (`ALIDADE_SAMPELS=8`) would be ignored silently. */
import { Config } from "../../config.ts";
import { scalarPaths } from "../../load-config.ts";
import { say } from "../command-line.ts";
import { terminal } from "../terminal.ts";

/** What is read, or set for others, beside the configuration. */
const others = [
  "ANSWER",
  "API_KEY",
  "CACHE",
  "CONTROL_TOKEN",
  "DEBUG",
  "DOCKER_ENGINES",
  "DOOR",
  "EXEC",
  "MODEL",
  "SANDBOX",
  "SERVICE_TOKEN",
];

/** Those that the configuration itself names, for keys and tokens, are known too. */
export function sayUnknownVariables(config: Config, env: Record<string, string | undefined> = terminal().env): void {
  const keys = scalarPaths().map((path) => path.join("_").toUpperCase());
  const known = new Set([...keys, ...others].map((name) => `ALIDADE_${name}`));
  const servers = [config.engine, ...(config.engines ?? []), ...config.grader_servers];
  const named = [config.control_token_env, ...servers.map(({ api_key_env }) => api_key_env)];
  for (const [name, value] of Object.entries(env)) {
    if (!name.startsWith("ALIDADE_") || name.startsWith("ALIDADE_TEST_") || !value || known.has(name) || named.includes(name)) continue;
    say(`alidade: the variable ${name} is unknown and does nothing: ${whatWasMeant(name, [...known])}`);
  }
}

function whatWasMeant(name: string, known: string[]): string {
  const key = name.slice("ALIDADE_".length).toLowerCase();
  if (Object.hasOwn(Config.shape, key)) return `${key} is no single value, so it stands in the run file`;
  const [near] = known
    .map((other) => ({ other, distance: distance(name, other) }))
    .filter((one) => one.distance <= mostSlips)
    .toSorted((a, b) => a.distance - b.distance);
  return near ? `was ${near.other} meant?` : "`alidade config --variables` lists those that there are";
}

/** Two letters in the wrong order are two. */
const mostSlips = 3;

/** How many letters have to be added, dropped or replaced. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (const [i, letter] of [...a].entries()) {
    const next = [i + 1];
    for (const [j, other] of [...b].entries())
      next.push(Math.min((row[j] ?? 0) + (letter === other ? 0 : 1), (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    row = next;
  }
  return row[b.length] ?? 0;
}
