/** The dashboard and the alert rules name metrics and labels that there are. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { parse } from "yaml";
import { Histogram } from "../../base/wire/histogram.ts";
import { engineMetrics } from "../../proxy/control/engine-metrics.ts";
import { ledgerMetrics } from "../../service/ledger-metrics.ts";
import { ObservedTimes } from "../../service/watch/observed-times.ts";
import { ProcessMetrics } from "../../service/watch/process-metrics.ts";

const folder = join(import.meta.dirname, "../../deploy/monitoring");

type Dashboard = { panels: { title: string; targets: { expr: string }[] }[] };
type Rules = { groups: { rules: { alert: string; expr: string; annotations: { summary: string; action: string } }[] }[] };

function metricNames(): Set<string> {
  using own = new ProcessMetrics();
  const lag = new Histogram("alidade_result_lag_seconds", "");
  const families = [...ledgerMetrics([], 0, []), ...engineMetrics([]), ...new ObservedTimes().families(), ...own.families(), lag.family()];
  return new Set(
    families.flatMap(({ name, type }) => (type === "histogram" ? ["_bucket", "_sum", "_count"].map((part) => name + part) : [name])),
  );
}

const namesIn = (expr: string): string[] => expr.match(/\b(?:alidade|process|nodejs)_\w+/g) ?? [];

test("each panel of the dashboard and each alert asks for metrics that there are", async () => {
  const { panels } = JSON.parse(await readFile(join(folder, "dashboard.json"), "utf8")) as Dashboard;
  const { groups } = parse(await readFile(join(folder, "alerts.yaml"), "utf8")) as Rules;
  const asked = [
    ...panels.flatMap(({ title, targets }) => targets.map(({ expr }) => [title, expr] as const)),
    ...groups.flatMap(({ rules }) => rules.map(({ alert, expr }) => [alert, expr] as const)),
  ];
  const known = metricNames();
  for (const [title, expr] of asked) {
    assert.ok(namesIn(expr).length > 0, title);
    assert.deepEqual(
      namesIn(expr).filter((name) => !known.has(name)),
      [],
      title,
    );
  }
});

test("each alert says what happens and what to do", async () => {
  const { groups } = parse(await readFile(join(folder, "alerts.yaml"), "utf8")) as Rules;
  for (const { alert, annotations } of groups.flatMap(({ rules }) => rules))
    for (const text of [annotations.summary, annotations.action]) assert.match(text, /\.$/, alert);
});
