/** What the verbs of the command line share: how they end and how they speak. */
import { InvalidArgumentError } from "commander";
import { AlidadeError, asAlidadeError } from "../../base/errors.ts";
import { type EventLine, type LogLevel, textOfLine } from "../../service/watch/index.ts";
import { visibleText } from "../../view/text/index.ts";
import { type Terminal, terminal } from "./terminal.ts";

/**
 * Progress goes to stderr and the result to stdout, so that it can be piped. Text may quote a grader, an engine or an
 * agent, so control characters are escaped: they must not act on the terminal.
 */
export function say(text: string, level: LogLevel = "info"): void {
  sayIn(terminal(), text, level);
}

/** A text, or a line of a log for machines, whose message is said to people. */
export function sayIn({ stderr, logFormat }: Terminal, said: string | EventLine, level: LogLevel = "info"): void {
  const line = typeof said === "string" ? { level, event: "note", message: said.trim() } : said;
  stderr.write(`${logFormat === "json" ? textOfLine(line) : visibleText(typeof said === "string" ? said : said.message)}\n`);
}

export function print(text: string): void {
  terminal().stdout.write(`${text}\n`);
}

/** One line for people, one JSON object for machines; 2 for a mistake of the user's, 1 for anything else. */
export function fail(error: unknown, json: boolean): number {
  const ours = asAlidadeError(error, "internal");
  if (json) print(JSON.stringify({ error: ours.toJSON() }));
  else say(`alidade: ${ours.message}`, "error");
  if (ours.code === "internal" && error instanceof Error && terminal().env.ALIDADE_DEBUG) say(error.stack ?? "");
  return ours.owner === "user" ? 2 : 1;
}

/** NaN for a text that is no number. An empty text is none: of an unset variable (`--port "$PORT"`) `Number` makes 0. */
export function numberIn(text: string): number {
  return text.trim() === "" ? Number.NaN : Number(text);
}

/** A flag's number, for commander: it names the flag and the text that is none. */
export function toNumber(text: string): number {
  const value = numberIn(text);
  if (Number.isNaN(value)) throw new InvalidArgumentError("Give a number.");
  return value;
}

/** A trainer's temperature. Throws `config_invalid` where it is no number above 0. */
export function toTemperature(text: string): number {
  const value = numberIn(text);
  if (value > 0 && value < Number.POSITIVE_INFINITY) return value;
  throw new AlidadeError("config_invalid", `--temperature is ${text}: give a number above 0`, { param: "temperature" });
}

/** For a flag: a difference of logprobs. */
export function toNats(text: string): number {
  const value = Number(text);
  if (Number.isFinite(value) && value >= 0 && text.trim() !== "") return value;
  throw new InvalidArgumentError(`"${text}" is no number of nats of 0 or more.`);
}
