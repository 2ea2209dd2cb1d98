/** `node test/fakes/load/table.ts [attack …]`: what each attack does to a sibling's calls and to the proxy's memory. */
import { Siege } from "./siege.ts";

await using siege = await Siege.start();
const names = process.argv.length > 2 ? process.argv.slice(2) : await siege.attacks();
for (const name of names) {
  const { alone, beside, ratio, peakRss, logged, heard } = await siege.measure(name, {
    rounds: Number(process.env.ROUNDS ?? 2),
    calls: Number(process.env.CALLS ?? 150),
  });
  const mb = (bytes: number): string => `${Math.round(bytes / 1e6)} MB`;
  console.log(
    `| ${name} | ${alone.toFixed(0)} ms | ${beside.toFixed(0)} ms | ${ratio.toFixed(2)} | ${mb(peakRss)} | ${mb(logged)} | ${JSON.stringify(heard)}`,
  );
}
