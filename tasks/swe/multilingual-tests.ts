/**
 * SWE-bench Multilingual. Its published rows do not say how they are tested, so these tables do, as swebench 4.1's. They have a
 * row for each instance. A version is the number of the instance's pull request.
 */
import { cRepos } from "./multilingual/c.ts";
import { goRepos } from "./multilingual/go.ts";
import { javaRepos } from "./multilingual/java.ts";
import { javascriptRepos } from "./multilingual/javascript.ts";
import { phpRepos } from "./multilingual/php.ts";
import { rubyRepos } from "./multilingual/ruby.ts";
import { rustRepos } from "./multilingual/rust.ts";

const repos = [...cRepos, ...goRepos, ...javaRepos, ...javascriptRepos, ...phpRepos, ...rubyRepos, ...rustRepos];

/** Instances of two repositories that have parsers of their own. */
const parsers = new Map([
  ...["9141", "8047", "8167"].map((version) => [`jekyll/jekyll ${version}`, "parse_log_minitest"] as const),
  ...["8761", "8771"].map((version) => [`jekyll/jekyll ${version}`, "parse_log_cucumber"] as const),
  ["immutable-js/immutable-js 2006", "parse_log_jest"],
  ["immutable-js/immutable-js 2005", "parse_log_jest_json"],
]);

const byInstance = new Map(
  repos.flatMap(([repo, parser, common, tests]) =>
    tests.map(([version, command, build = common]) => {
      const key = `${repo} ${version}`;
      return [key.toLowerCase(), { command, parser: parsers.get(key) ?? parser, build }] as const;
    }),
  ),
);

export type MultilingualTests = { command: string; parser: string; build: string };

/** Returns null if the table does not have the instance. Ignores case, because rows spell some repositories in small letters. */
export function multilingualTestsOf(repo: string, version: string): MultilingualTests | null {
  return byInstance.get(`${repo} ${version}`.toLowerCase()) ?? null;
}
