/** `alidade postgres`: the database of a service on several machines, where none is installed. */
import type { Command } from "commander";
import { AlidadeError } from "../../../base/errors.ts";
import { lockFolder } from "../../../rollouts/index.ts";
import { assertOwnFolder, OwnPostgres, type PostgresPlace, rootFolder } from "../../../service/ledger/index.ts";
import { print, say, toNumber } from "../command-line.ts";
import { terminal } from "../terminal.ts";

type PostgresFlags = { folder?: string; host: string; port: number; user?: string; json?: boolean };

export function postgres(program: Command): void {
  program
    .command("postgres")
    .description(
      "Runs a Postgres until Ctrl-C, with a database for `alidade service --ledger`, from a package of npm: no installed Postgres is\nneeded. All data are in one folder: started again after any end it goes on with them.",
    )
    .option("--folder <path>", `the data, the password and 60 MB of programs (default: runs/postgres, as root ${rootFolder})`)
    .option("--host <address>", "address to listen on; 0.0.0.0 for nodes on other machines, who need the password too", "127.0.0.1")
    .option("-p, --port <number>", "port to listen on", toNumber, 5432)
    .option("--user <name>", "as root: the user that runs it, for Postgres does not run as root (default: postgres)")
    .option("--json", "print one JSON object with url and password_file when it takes connections")
    .addHelpText("after", "\nExample:\n  alidade postgres\n\nWhat a service and its nodes do with it: docs/service.md#on-several-machines")
    .action(async (flags: PostgresFlags) => {
      const signal = terminal().stopSignal();
      try {
        await runPostgres(flags, signal);
      } catch (error) {
        if (!signal.aborted) throw error;
      }
    });
}

/** Until the signal. */
async function runPostgres(flags: PostgresFlags, signal: AbortSignal): Promise<void> {
  assertAddress(flags);
  const folder = flags.folder ?? (process.geteuid?.() === 0 ? rootFolder : "runs/postgres");
  await assertOwnFolder(folder);
  await using _lock = await lockFolder(folder);
  const own = await OwnPostgres.open({ folder, host: flags.host, port: flags.port, user: flags.user }, signal);
  const { place } = own;
  let isTold = false;
  const onReady = (): void => {
    say(isTold ? "alidade: Postgres takes connections again" : whereItIs(place));
    if (flags.json && !isTold) print(JSON.stringify(place));
    isTold = true;
  };
  const log = (line: string): void => {
    if (!signal.aborted) say(`postgres: ${line}`);
  };
  await own.run({ signal, onReady, log });
}

function whereItIs({ url, password_file }: PostgresPlace): string {
  return `alidade: Postgres on ${url}, for --ledger and --join; where service and nodes are started:\n  export PGPASSFILE=${password_file}`;
}

function assertAddress({ host, port }: PostgresFlags): void {
  if (!/^[\w.:-]+$/.test(host))
    throw new AlidadeError("config_invalid", `--host is "${host.slice(0, 100)}": give one address of this machine`, { param: "host" });
  if (!(Number.isInteger(port) && port >= 1 && port <= 65_535))
    throw new AlidadeError("config_invalid", `--port is ${port}: give a number from 1 to 65535`, { param: "port" });
}
