/** A node that starts before its database and its service waits for them, and for nothing that waiting does not mend. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { AlidadeError } from "../../../../base/errors.ts";
import { whenThere } from "../../../../cli/commands/service/when-there.ts";

const coded = (code: string): Error => Object.assign(new Error(code), { code });
const ledgerAway = (code: string) => new AlidadeError("store_error", `the ledger does not answer: ${code}`, { cause: coded(code) });

async function waited(errors: Error[], seconds = 60): Promise<{ notes: string[]; found: string; asked: number }> {
  const notes: string[] = [];
  let asked = 0;
  const open = async (): Promise<string> => {
    const error = errors[asked++];
    if (error) throw error;
    return "open";
  };
  const found = await whenThere(open, { seconds, note: (text) => void notes.push(text), signal: AbortSignal.timeout(30_000) });
  return { notes, found, asked };
}

test("a database that starts, and a service that was not started yet, are waited for, and that is said once", async () => {
  const { notes, found, asked } = await waited([
    ledgerAway("ECONNREFUSED"),
    ledgerAway("57P03"),
    new AlidadeError("not_found", "it is not the place of a service that was started"),
  ]);
  assert.deepEqual([found, asked, notes.length], ["open", 4, 1]);
  assert.match(notes[0] ?? "", /waiting up to 60 s .*ECONNREFUSED/);
  const tried = new AggregateError([coded("ECONNREFUSED"), coded("EHOSTUNREACH")], "no address answers");
  assert.equal((await waited([new AlidadeError("store_error", "away", { cause: tried })])).asked, 2);
});

test("a wrong password and a wrong place end a node at once, and so does a stop", async () => {
  await assert.rejects(waited([ledgerAway("28P01")]), /28P01/);
  await assert.rejects(waited([new AlidadeError("config_invalid", "another ledger's place")]), { code: "config_invalid" });
  await assert.rejects(waited([ledgerAway("ECONNREFUSED")], 0), /ECONNREFUSED/);
  const stop = new AbortController();
  const open = async (): Promise<never> => {
    stop.abort(new Error("stopped"));
    throw ledgerAway("ECONNREFUSED");
  };
  await assert.rejects(whenThere(open, { seconds: 60, note: () => undefined, signal: stop.signal }), /stopped/);
});
