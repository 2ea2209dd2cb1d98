/** Single values by their name. */
import { readJson } from "../../../base/schema/read-json.ts";
import { ControlState, stepInForce } from "../control-state.ts";
import type { Transaction } from "./connection/postgres-database.ts";

/** The value under the name; `first` where there is none yet. */
export async function fact(db: Transaction, name: string, first: string): Promise<string> {
  const known = () => db.get("SELECT value FROM facts WHERE name = $1", name);
  const found = await known();
  if (found !== undefined) return String(found.value);
  await db.run("INSERT INTO facts VALUES ($1, $2) ON CONFLICT DO NOTHING", name, first);
  return String((await known())?.value);
}

export async function controlOf(db: Transaction): Promise<ControlState> {
  return ControlState.parse(readJson(await fact(db, "control", "{}")));
}

/** The step in force is a fact beside it, for statements that read it. Inside the transaction of `controlOf`. */
export async function saveControl(db: Transaction, state: ControlState): Promise<void> {
  await db.run("UPDATE facts SET value = $1 WHERE name = 'control'", JSON.stringify(state));
  await db.run("DELETE FROM facts WHERE name = 'step'");
  const step = stepInForce(state);
  if (step !== null) await db.run("INSERT INTO facts VALUES ('step', $1)", String(step));
}

/** null: the weights have no name with a step. */
export const stepInSql = "(SELECT value::bigint FROM facts WHERE name = 'step')";

export async function stepOf(db: Transaction): Promise<number | null> {
  const step = (await db.get(`SELECT ${stepInSql} AS step`))?.step;
  return step == null ? null : Number(step);
}
