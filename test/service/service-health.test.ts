/** Health of a service whose ledger hangs. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ServiceControl } from "../../service/fences/service-control.ts";
import { PostgresLedger } from "../../service/ledger/index.ts";
import { loadPg } from "../../service/ledger/postgres/connection/pg-library.ts";
import { serviceHealth } from "../../service/service-health.ts";
import { PostgresPlace, postgresFor } from "../fakes/machine/postgres.ts";
import { until } from "../fakes/machine/until.ts";
import { need } from "../needs.ts";

const postgres = postgresFor();

test("questions of a health that was answered, or whose monitor left, keep no connection of the ledger", async (t) => {
  if (!(await need(t, "postgres"))) return;
  const at = new PostgresPlace(postgres, "health");
  await using ledger = await PostgresLedger.open(await at.url());
  const { Client } = await loadPg();
  const client = new Client({ host: (await postgres()).folder, user: "alidade", database: "postgres" });
  await client.connect();
  t.after(() => client.end());
  await client.query("BEGIN");
  await client.query("LOCK TABLE health.nodes IN ACCESS EXCLUSIVE MODE");
  const control = new ServiceControl(ledger);
  const health = (signal: AbortSignal) => serviceHealth({ ledger, engines: null, nodeFaults: null }, control, signal);
  const hanging = async () =>
    (await at.ask("SELECT count(*)::integer AS n FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%nodes%'"))[0]?.n;

  const monitor = new AbortController();
  const left = Array.from({ length: 10 }, () => health(monitor.signal));
  await until(async () => Number(await hanging()) >= 2);
  monitor.abort(new Error("the monitor left"));
  for (const one of left) await assert.rejects(one, { message: "the monitor left" });
  assert.deepEqual(await ledger.sets(), [], "it has no place in the line behind them");

  const { status, reason } = (await health(new AbortController().signal)).health;
  assert.deepEqual([status, /^the ledger does not answer: ./.test(reason ?? "")], ["down", true]);
  assert.deepEqual(await ledger.sets(), []);
  await client.query("ROLLBACK");
  assert.equal((await health(new AbortController().signal)).health.status, "degraded", "no node is at work, and the ledger answers");
});

test("health names the transaction that holds results back, and what ends it", async (t) => {
  if (!(await need(t, "postgres"))) return;
  const at = new PostgresPlace(postgres, "held");
  await using ledger = await PostgresLedger.open(await at.url(), "service", { patience: { results: 0, vacuum: 3_600 } });
  await ledger.join({ name: "n", slots: 1 });
  const health = () => serviceHealth({ ledger, engines: null, nodeFaults: null }, new ServiceControl(ledger), new AbortController().signal);
  assert.equal((await health()).health.status, "ok");
  const { Client } = await loadPg();
  const client = new Client({ host: (await postgres()).folder, user: "alidade", database: "postgres", application_name: "report" });
  await client.connect();
  t.after(() => client.end());
  await client.query("BEGIN");
  await client.query("SELECT pg_current_xact_id()");
  const { status, reason } = (await health()).health;
  assert.equal(status, "degraded");
  assert.match(reason ?? "", /^results are held back by process \d+ .*application "report".* end it by SELECT pg_terminate_backend/);
});
