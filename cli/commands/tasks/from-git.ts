/** `alidade tasks from-git`: tasks out of a repository's own fixing commits. */
import { resolve } from "node:path";
import type { Command } from "commander";
import { currentOwner } from "../../../base/host/owner.ts";
import { newId } from "../../../base/schema/ids.ts";
import { fixingCommits, type PassedOver, Repository } from "../../../tasks/made/index.ts";
import { say, toNumber } from "../command-line.ts";
import { terminal } from "../terminal.ts";
import { addMakeFlags, type MakeFlags, makeOf, tellMade, wholeNumber } from "./make-flags.ts";

type FromGitFlags = MakeFlags & { since?: string; limit?: number };

export function fromGit(tasks: Command): void {
  addMakeFlags(tasks.command("from-git").argument("<repo>", "folder, bundle or URL of a git repository"))
    .summary("make tasks out of a repository's own fixing commits")
    .description(
      "Each commit that changes tests and other files is tried, newest first: its tests must fail before it and pass after it, twice. What is kept\nbecomes a task in <out>/, and <out>/tried.json says of each what came of it: the same line goes on where an earlier one ended.\nTests run in Docker without a network. The exit code is 1 where the folder holds no task in the end.",
    )
    .option("--limit <number>", "stop at this many tasks in <out>", toNumber)
    .option("--since <date>", "only commits after it, such as 2025-01-01 or '6 months ago'")
    .addHelpText(
      "after",
      "\nExamples:\n  alidade tasks from-git ../slug --test 'python3 -m unittest -v' --parser unittest\n  alidade tasks from-git https://github.com/acme/widgets --since 2025-01-01 --limit 20 --image acme/widgets-tests:1 --test 'pytest -rA' --parser pytest",
    )
    .action(async (source: string, flags: FromGitFlags) => {
      const signal = terminal().stopSignal();
      const owner = { run_id: newId("run"), owner: await currentOwner() };
      const limit = flags.limit === undefined ? undefined : wholeNumber(flags.limit, "limit");
      const make = await makeOf(flags, owner, signal);
      say(`  copying ${source}`);
      await using repository = await Repository.copy(source, owner, signal);
      const passedOver: PassedOver = { merge: 0, first_commit: 0, no_test_changed: 0, only_tests_changed: 0 };
      const candidates = fixingCommits(repository, { tests: make.how.tests, since: flags.since }, passedOver);
      const out = resolve(flags.out ?? `tasks-${repository.name}`);
      const tried = await make.run(candidates, { out, source: repository.source, limit });
      if (tried.length + Object.values(passedOver).reduce((sum, count) => sum + count) === 0)
        say(`  ${source} has no commit${flags.since === undefined ? "" : ` since ${flags.since}: is that a date that git reads?`}`);
      tellMade(out, tried, passedOver, flags.json === true);
    });
}
