/** Single values by their name. Inside the caller's transaction. */
import { readJson } from "../../schema/read-json.ts";
import { ControlState, stepInForce } from "../control-state.ts";
import type { Transaction } from "./postgres-database.ts";

/** The value under the name; `first` where there is none yet. */
export async function fact(db: Transaction, name: string, first: string): Promise<string> {
  await db.run("INSERT INTO facts VALUES ($1, $2) ON CONFLICT DO NOTHING", name, first);
  return String((await db.get("SELECT value FROM facts WHERE name = $1", name))?.value);
}

export async function controlOf(db: Transaction): Promise<ControlState> {
  return ControlState.parse(readJson(await fact(db, "control", "{}")));
}

/** null: the weights have no name with a step. Read alone, so that one who looks waits for no order that is being written. */
export async function stepOf(db: Transaction): Promise<number | null> {
  const found = await db.get("SELECT value FROM facts WHERE name = 'control'");
  return found === undefined ? null : stepInForce(ControlState.parse(readJson(String(found.value))));
}
