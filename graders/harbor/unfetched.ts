/**
 * Finds signs in a grading that its tests lacked tools: the door's refusals, and errors of package managers and shells. A work
 * can print all of these, and ask the door for any host. So the signs prove nothing against the machine. `fault/` decides by
 * grading the task's own files.
 */
import { z } from "zod";
import type { NetworkAccess, NetworkUse } from "../../base/schema/network.ts";
import { hostName } from "../../sandboxes/network/index.ts";

export const Unfetched = z.strictObject({
  /** Programs that were not found, and that the script fetches or fetches by. */
  missing: z.array(z.string()),
  /** Package managers that said that they failed. */
  failed: z.array(z.string()),
  /** The first such line. */
  said: z.string().nullable(),
  /** Hosts that were refused or not reached, with the door's reason if it has one. */
  hosts: z.array(z.string()),
  /** What the tests may reach. */
  reach: z.enum(["none", "allow", "public"]),
});
export type Unfetched = z.infer<typeof Unfetched>;

/** The lines by which each tool says that it could not fetch or install. */
const failures: readonly (readonly [tool: string, line: RegExp])[] = [
  [
    "apt-get",
    /^E: (?:Unable to (?:locate|fetch|correct)|Failed to fetch|Package .{1,100} has no installation candidate|setgroups|The repository|Some index files|Sub-process|Method|Could not|Internal)|^W: Failed to fetch|^Err:|Temporary failure resolving|^dpkg: error/,
  ],
  ["apk", /^WARNING: (?:fetching|opening|updating) |^ERROR: unable to select packages|: temporary error \(try again later\)/],
  ["dnf", /^(?:Error: Failed to download|Errors during downloading|Could not (?:resolve|retrieve) |Cannot find a valid baseurl)/],
  [
    "pip",
    /^ERROR: (?:Could not find a version|No matching distribution|Could not install)|Failed to establish a new connection|ProxyError\(/,
  ],
  [
    "uv",
    /[Ff]ailed to (?:fetch|download)[:` ]|error sending request for url|Request failed after|dns error|tunnel error|No solution found when resolving/,
  ],
  // Other codes tell of the work's own package.json, or of tests that failed (ELIFECYCLE).
  [
    "npm",
    /^npm (?:ERR!|error) (?:code E(?:AI_AGAIN|NOTFOUND|CONN[A-Z]+|TIMEDOUT|NETUNREACH|HOSTUNREACH|401|403|407|429|5\d\d)$|code ERR_SOCKET_TIMEOUT$|network )/,
  ],
  ["cargo", /^error: failed to (?:get|download|fetch)|^warning: spurious network error/],
  ["go", /dial tcp: lookup |proxyconnect tcp: /],
  ["gem", /^ERROR: {1,2}Could not find a valid gem|^Could not (?:reach|find) .{1,200} (?:source|gem)/],
  ["conda", /^CondaHTTPError|^CondaError/],
  ["git", /^fatal: unable to access '/],
  ["curl", /^curl: \((?:5|6|7|22|28|35|52|56|60)\) /],
  [
    "wget",
    /unable to resolve host address|^wget: (?:bad address|server returned error|can't connect|unable to)|^Proxy tunneling failed|Connection refused\.$/,
  ],
];

/** Tools whose errors are those of another tool. */
const speaksAs = new Map([
  ["uvx", "uv"],
  ["npx", "npm"],
]);

const notFound = /(?:^|: |\s)([A-Za-z][\w.+-]{0,60}): (?:command )?not found$/;
const namedHost =
  /https?:\/\/([\w.-]{1,253})|(?:resolv\w+|host|lookup|address|connect to)(?: address)?[:\s'‘"]+([\w-]{1,63}(?:\.[\w-]{1,63})+)/i;

/** Only the end of a longer output is searched. */
const mostCharacters = 1024 * 1024;
const longestLine = 1_000;
const mostNamed = 5;

export type FetchSigns = {
  /** The lines by which the task's own scripts of tests fetch. */
  lines: readonly string[];
  /** Tools by which they fetch. */
  tools: readonly string[];
  output: string;
  refusals: NetworkUse["refusals"];
  access: NetworkAccess;
};

/** Returns null if there is no sign, or if these tests fetch nothing. */
export function unfetched({ lines: fetches, tools, output, refusals, access }: FetchSigns): Unfetched | null {
  if (tools.length === 0) return null;
  const speakers = new Set(tools.map((tool) => speaksAs.get(tool) ?? tool));
  // Other programs that a script names may be what the work is to make.
  const fetched = new Set(fetches.flatMap((line) => line.split(/[^\w.+-]+/)));
  const lines = output
    .slice(-mostCharacters)
    .split("\n")
    .map((line) => line.trim().slice(0, longestLine));
  const told = lines.flatMap((line) => failures.flatMap(([tool, says]) => (speakers.has(tool) && says.test(line) ? [{ tool, line }] : [])));
  const missing = lines.flatMap((line) => notFound.exec(line)?.[1] ?? []).filter((name) => fetched.has(name));
  const refused = refusals.map(
    ({ host, port, reason }) => `${host ?? "a request without a host"}${port === null ? "" : `:${port}`} (${reason})`,
  );
  const named = told.flatMap(({ line }) => hostsIn(line)).filter((host) => !refusals.some((one) => one.host === host));
  if (told.length === 0 && missing.length === 0 && refused.length === 0) return null;
  return {
    missing: first(missing),
    failed: first(told.map(({ tool }) => tool)),
    said: told[0]?.line.slice(0, 300) ?? null,
    hosts: first([...refused, ...named]),
    reach: typeof access === "string" ? access : "allow",
  };
}

function hostsIn(line: string): string[] {
  const [, ofUrl, ofWords] = namedHost.exec(line) ?? [];
  const host = hostName(ofUrl ?? ofWords ?? "");
  return host === null ? [] : [host];
}

function first(words: readonly string[]): string[] {
  return [...new Set(words)].slice(0, mostNamed);
}

/** These tools also run the tests. */
const runners = ["uv", "npm"];

/** Whether the signs alone say that nothing was judged: without such a program no test ran. */
export function couldNotJudge({ missing, failed }: Unfetched): boolean {
  return missing.length > 0 || failed.some((tool) => runners.includes(tool));
}

/** Says what failed, and what cures it. */
export function unfetchedInWords({ missing, failed, said, hosts, reach }: Unfetched): string {
  const words = [
    ...(missing.length > 0 ? [`${missing.join(", ")} not found`] : []),
    ...(failed.length > 0 ? [`${failed.join(", ")} failed${said === null ? "" : ` ("${said}")`}`] : []),
    ...(hosts.length > 0 ? [`${hosts.join(", ")} not reached`] : []),
  ];
  return `the tests could not fetch or install their tools: ${words.join("; ")}. ${cures[reach]}`;
}

const cures: Record<Unfetched["reach"], string> = {
  none: "They reach nothing: pass --verifier-network public, or names of hosts, or put the tools into the image",
  allow: "Add these hosts to --verifier-network, or to the task's list, or put the tools into the image",
  public: "They reach the public network: look at this machine's own, and at the package manager's words, or put the tools into the image",
};
