/** Postgres refuses to run as root, so root runs it as another user of this machine. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { AlidadeError } from "../../../../base/errors.ts";
import type { ServerUser } from "./programs.ts";

/** What Postgres is told to run as where `--user` names none. */
const usual = "postgres";

/** `given`: the user that root chose. Throws `config_invalid` with what to do. */
export async function serverUser(given: string | undefined): Promise<ServerUser> {
  const refuse = (message: string) => new AlidadeError("config_invalid", message, { param: "user" });
  if (process.geteuid?.() !== 0) {
    if (given === undefined) return null;
    throw refuse(`--user is "${given.slice(0, 60)}", and only root can run Postgres as another user: leave it out`);
  }
  const name = given ?? usual;
  if (!/^[a-z_][\w.-]{0,60}$/i.test(name)) throw refuse(`--user is "${name.slice(0, 60)}": give the name of a user of this machine`);
  const [uid, gid] = await Promise.all(["-u", "-g"].map((which) => idOf(which, name)));
  if (uid === null || gid === null || uid === undefined || gid === undefined)
    throw refuse(
      `Postgres does not run as root, and this machine has no user "${name}": useradd --system ${usual}, or name another one by --user`,
    );
  if (uid === 0) throw refuse(`--user is "${name}", which is root, and Postgres does not run as root: name another user`);
  return { name, uid, gid };
}

/** null: there is no such user. */
function idOf(which: string, name: string): Promise<number | null> {
  return promisify(execFile)("id", [which, name]).then(
    ({ stdout }) => Number(stdout),
    () => null,
  );
}

/** Whether the user of the server may pass the folders above, and enter this one. */
export async function canReach(user: ServerUser, folder: string): Promise<boolean> {
  if (user === null) return true;
  return promisify(execFile)("test", ["-x", folder], { uid: user.uid, gid: user.gid }).then(
    () => true,
    () => false,
  );
}
