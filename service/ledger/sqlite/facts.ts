/** Single values by their name. Inside the caller's transaction. */
import { readJson } from "../../../base/schema/read-json.ts";
import { ControlState, stepInForce } from "../control-state.ts";
import type { Database } from "./database.ts";

/** The value under the name; `first` where there is none yet. */
export function fact(db: Database, name: string, first: string): string {
  db.run("INSERT INTO facts (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING", name, first);
  return String(db.get("SELECT value FROM facts WHERE name = ?", name)?.value);
}

export function controlOf(db: Database): ControlState {
  return ControlState.parse(readJson(fact(db, "control", "{}")));
}

/** null: the weights have no name with a step. */
export function stepOf(db: Database): number | null {
  return stepInForce(controlOf(db));
}
