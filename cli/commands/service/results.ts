/** `alidade results`: how the rollouts of a service ended, as they do. */
import type { Command } from "commander";
import { AlidadeError } from "../../../base/errors.ts";
import { RolloutSet } from "../../../service/index.ts";
import type { ResultRow, SetState } from "../../../service/ledger/index.ts";
import { visibleText } from "../../../view/text/index.ts";
import { print, say } from "../command-line.ts";
import { terminal } from "../terminal.ts";
import { type AskFlags, addAskFlags, askedPlace, clientAt } from "./ask-service.ts";
import { nameOf } from "./status.ts";

type ResultsFlags = AskFlags & { set?: string; after?: string; skipExpired?: boolean; follow?: boolean; json?: boolean };

/** The end of a set is seen after a wait that brought nothing. */
const waitSeconds = 2;
const linesAtOnce = 100;

export function results(program: Command): void {
  addAskFlags(program.command("results"))
    .description(
      "Prints how the rollouts of a service ended, one a line: place in its group, reward, seconds, status, versions of the weights.\nWith --follow it waits for more until the set is drained and all of it was printed, also while the service is started again.",
    )
    .option("--follow", "wait for more")
    .option("--set <key>", "the set's key, or namespace/key (default: the only one that there is)")
    .option("--after <cursor>", "only what ended after this one")
    .option("--skip-expired", "print what is left where results are expired (default: refuse)")
    .option("--json", "print one JSON object a line with cursor and result")
    .addHelpText(
      "after",
      "\nExamples:\n  alidade results --follow\n  alidade results --set first-steps --json > results.jsonl\n\nCtrl-C says the cursor to go on from.",
    )
    .action(async (flags: ResultsFlags) => {
      const signal = terminal().stopSignal();
      await printResults(flags, signal);
    });
}

async function printResults(flags: ResultsFlags, signal: AbortSignal): Promise<void> {
  await using client = await clientAt(askedPlace(flags), { patience: flags.follow ? Number.POSITIVE_INFINITY : 0 });
  const set = new RolloutSet(client, setNamed(await client.sets(signal), flags.set));
  if (!flags.json) print(["rollout".padEnd(24), ...["reward", "seconds"].map((name) => name.padStart(8)), "status"].join("  "));
  let after = flags.after ?? null;
  const asked = {
    payload: "none",
    limit: linesAtOnce,
    wait: flags.follow ? waitSeconds : 0,
    ...(flags.skipExpired && { expired: "skip" as const }),
    signal,
  } as const;
  try {
    for await (const { cursor, result } of set.results({ ...asked, after })) {
      print(flags.json ? JSON.stringify({ cursor, result }) : lineOf(result));
      after = cursor;
    }
  } catch (error) {
    if (!signal.aborted) throw error;
    if (after !== null) say(`alidade: the same command with --after ${after} goes on from here`);
  }
}

/** `name`: a key, with its namespace before it where several have it. */
function setNamed(sets: readonly SetState[], name: string | undefined): SetState {
  const found = sets.filter((one) => name === undefined || one.key === name || nameOf(one) === name);
  if (found.length === 1 && found[0]) return found[0];
  const keys = sets.slice(-20).map(nameOf);
  const there = sets.length === 0 ? "the service has no set yet" : `name one by --set; there are: ${keys.join(", ")}`;
  const what =
    name === undefined
      ? "--set is not given"
      : `--set is ${name}, which is ${found.length === 0 ? "no set" : "a set of several namespaces"}`;
  throw new AlidadeError("config_invalid", `${what}: ${there}`, { param: "set" });
}

function lineOf({ group_key, index, reward, times, state, error, mask_reason, policies }: ResultRow): string {
  const { init, done } = times;
  const seconds = init === undefined || done === undefined ? "–" : ((done - init) / 1000).toFixed(1);
  const why = error?.code ?? mask_reason;
  const versions = policies.map(({ version }) => version).join(", ");
  const cells = [
    `${group_key}/${index}`.padEnd(24),
    (reward === null ? "–" : String(Number(reward.toFixed(4)))).padStart(8),
    seconds.padStart(8),
    (why === null ? state : `${state} (${why})`).padEnd(24),
    versions,
  ];
  return visibleText(cells.join("  ")).replaceAll("\n", "\\n").trimEnd();
}
