/**
 * The figures of the README: what the proxy costs beside a bare pass-through, and beside Polar's gateway where a checkout of it
 * is given, all in one interleaved run.
 *
 *     node bench/readme-figures.ts                      prints the table, about two minutes on a quiet machine
 *     node bench/readme-figures.ts --write              and puts it into README.md, with its commit
 *     node bench/readme-figures.ts --polar FOLDER       with the gateway of this checkout, in memory and on disk
 *     node bench/readme-figures.ts --quick              a smoke test: the numbers mean nothing
 */
import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { payloadOf } from "./proxy-overhead/payloads.ts";
import { polarGateways } from "./proxy-overhead/polar.ts";
import { measureOverhead } from "./proxy-overhead/rounds.ts";
import { readmeTable, withTable } from "./readme-table.ts";

const { values: options } = parseArgs({
  options: {
    write: { type: "boolean", default: false },
    polar: { type: "string" },
    rounds: { type: "string", default: "9" },
    quick: { type: "boolean", default: false },
  },
});
if (options.write && options.quick) throw new Error("--quick measures nothing that may be written: leave --write or --quick out");

const { polar } = options;
const report = await measureOverhead({
  payloads: ["b"],
  shapes: ["growing"],
  rounds: options.quick ? 1 : Number(options.rounds),
  secondsACell: options.quick ? 0.05 : 1,
  concurrent: options.quick ? 2 : 16,
  quick: options.quick,
  ...(polar !== undefined && { peers: (upstream) => polarGateways(polar, upstream, payloadOf("b")) }),
});
// Other code than that of its commit was measured.
if (options.write && !/^[0-9a-f]{7,}$/.test(report.commit)) throw new Error(`the commit is "${report.commit}": commit first, then measure`);
const table = readmeTable(report);
console.log(table);
if (options.write) {
  const readme = fileURLToPath(new URL("../README.md", import.meta.url));
  await writeFile(readme, withTable(await readFile(readme, "utf8"), table));
}
