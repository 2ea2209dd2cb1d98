/** Flags of a run over a service, and where that is. */
import { stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { Command } from "commander";
import { AlidadeError } from "../../../base/errors.ts";
import { toNumber } from "../command-line.ts";
import type { WhichService } from "../service/ask-service.ts";
import { caWords, defaultTokenVariable } from "../service/token-words.ts";
import type { AskedService } from "./described-run.ts";

export type RunServiceFlags = { service?: string; tokenEnv?: string; ca?: string; priority?: number; weight?: number; cancel?: boolean };

export function addServiceFlags(command: Command): Command {
  return command
    .option(
      "--service <place>",
      "a service makes the rollouts: its URL, its service.json, or the folder of that or of the service (its --out); tasks, samples and options of sessions are the run's, all else is the service's",
    )
    .option(
      "--token-env <name>",
      `with --service: variable that holds a token with the roles submit and read (default: ${defaultTokenVariable})`,
    )
    .option("--ca <file>", `with --service: ${caWords}`)
    .option("--priority <number>", "with --service: rollouts of a higher one are claimed first (default: 0)", toNumber)
    .option("--weight <number>", "with --service: share of the slots among those of one priority (default: 1)", toNumber)
    .option("--cancel", "with --resume, of a run over a service: what is not over is cancelled there");
}

/** Throws `config_invalid` for a flag that says nothing without a service. */
export function assertNoServiceFlags({ tokenEnv, ca, priority, weight, cancel }: RunServiceFlags): void {
  const [found] = Object.entries({ "token-env": tokenEnv, ca, priority, weight, cancel }).find(([, value]) => value !== undefined) ?? [];
  if (found === undefined) return;
  const wanted = found === "cancel" ? "--resume and the folder of a run over a service" : "--service";
  throw new AlidadeError("config_invalid", `--${found} goes with ${wanted}: it is not given`, { param: found.replace("-", "_") });
}

/** As run.json keeps it: paths are absolute, and the token is not in it. Throws `config_invalid`. */
export async function askedService(place: string, { tokenEnv, ca }: RunServiceFlags): Promise<Omit<AskedService, "set">> {
  const rest = { ca: ca === undefined ? null : resolve(ca), token_env: tokenEnv ?? defaultTokenVariable };
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(place)) return { url: null, file: await serviceFile(resolve(place)), ...rest };
  const url = URL.parse(place);
  if (url === null || !/^https?:$/.test(url.protocol)) throw invalid(`is ${place}: give an http or https address`);
  if (url.username !== "" || url.password !== "")
    throw invalid("has a name or a password in it, which run.json would keep: give the token by --token-env");
  return { url: place.replace(/\/+$/, ""), file: null, ...rest };
}

function invalid(what: string): AlidadeError {
  return new AlidadeError("config_invalid", `--service ${what}`, { param: "service" });
}

/** A folder is the service's own, or its --out, as `status` takes it. */
async function serviceFile(place: string): Promise<string> {
  const isFolder = (await stat(place).catch(() => null))?.isDirectory() ?? false;
  if (!isFolder) return place;
  const below = join(place, "service", "service.json");
  return (await stat(below).catch(() => null)) === null ? join(place, "service.json") : below;
}

export function placeOf({ url, file, ca, token_env }: Omit<AskedService, "set">): WhichService {
  return {
    url: url ?? undefined,
    file,
    ca: ca ?? undefined,
    tokenEnv: token_env,
    flags: "give a service's URL, its service.json or the folder of that by --service",
  };
}
