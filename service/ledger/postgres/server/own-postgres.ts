/** A Postgres for a machine that has none: one folder, one database, one role with a password. It goes on where it was after any end. */
import { chown } from "node:fs/promises";
import { hostname } from "node:os";
import { resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { AlidadeError } from "../../../../base/errors.ts";
import { untilAborted } from "../../../../base/host/until-aborted.ts";
import { database, openCluster, type PostgresCluster, role } from "./cluster.ts";
import { postgresPrograms, type ServerUser } from "./programs.ts";
import { ServerProcess, untilFree } from "./server-process.ts";
import { canReach, serverUser } from "./server-user.ts";

/** Milliseconds before a server that was killed is started again. */
const pauseMs = 1_000;

/**
 * Three connections a node: a hundred nodes and the services beside them. One listener, by TCP, for other machines have the same
 * address. What clients sent is in no log: tasks are in it.
 */
const settings = {
  max_connections: "400",
  unix_socket_directories: "",
  log_min_messages: "log",
  log_min_error_statement: "panic",
  log_checkpoints: "off",
  lc_messages: "C",
};

/** The default folder of root: the user of the server may not enter folders of root's own. */
export const rootFolder = "/var/lib/alidade-postgres";

/** `user`: who runs it where this process is root's. */
export type OwnPostgresOptions = { folder: string; host: string; port: number; user: string | undefined };

/** Without the password, which is in the file: in the form of ~/.pgpass, for PGPASSFILE. */
export type PostgresPlace = { url: string; password_file: string };

export class OwnPostgres {
  readonly place: PostgresPlace;
  readonly #cluster: PostgresCluster;
  readonly #settings: Record<string, string>;

  /** The caller holds the lock of the folder. Throws `config_invalid`, `store_error`. */
  static async open({ folder, host, port, user: given }: OwnPostgresOptions, signal: AbortSignal): Promise<OwnPostgres> {
    const user = await serverUser(given);
    const place = resolve(folder);
    if (user !== null) await giveFolder(user, place);
    const cluster = await openCluster(place, await postgresPrograms(place, user), signal);
    return new OwnPostgres(cluster, host, port);
  }

  private constructor(cluster: PostgresCluster, host: string, port: number) {
    this.#cluster = cluster;
    this.#settings = { ...settings, listen_addresses: host, port: String(port) };
    this.place = { url: `postgres://${role}@${nameOf(host)}:${port}/${database}`, password_file: cluster.passwordFile };
  }

  /** Until `signal`: the server, and again where it was killed. `onReady` is called each time it takes connections. */
  async run({ signal, onReady, log }: { signal: AbortSignal; onReady: () => void; log: (line: string) => void }): Promise<void> {
    const options = { settings: this.#settings, log, signal };
    while (!signal.aborted) {
      await using server = await untilFree(() => ServerProcess.start(this.#cluster, options), signal);
      onReady();
      const end = await untilAborted(server.ended, signal);
      log(`the server ended (${end}): it is started again, and goes on with its data`);
      await sleep(pauseMs, undefined, { signal });
    }
  }
}

async function giveFolder(user: NonNullable<ServerUser>, folder: string): Promise<void> {
  await chown(folder, user.uid, user.gid);
  if (await canReach(user, folder)) return;
  throw new AlidadeError(
    "config_invalid",
    `--folder is ${folder}: Postgres runs as the user ${user.name}, who may not pass all folders above it: name one like ${rootFolder}`,
    { param: "folder" },
  );
}

/** For a URL that other machines can use too. */
function nameOf(host: string): string {
  if (["0.0.0.0", "::"].includes(host)) return hostname();
  return host.includes(":") ? `[${host}]` : host;
}
