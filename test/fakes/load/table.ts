/** `node test/fakes/load/table.ts [attack …]`: what each attack does to a sibling's calls, to the proxy's thread and to its memory. */
import { median, type Round, Siege } from "./siege.ts";

await using siege = await Siege.start();
const names = process.argv.length > 2 ? process.argv.slice(2) : await siege.attacks();
for (const name of names) {
  const { rounds, peakRss, logged, heard } = await siege.measure(name, {
    rounds: Number(process.env.ROUNDS ?? 2),
    calls: Number(process.env.CALLS ?? 150),
  });
  const mb = (bytes: number): string => `${Math.round(bytes / 1e6)} MB`;
  const of = (key: keyof Round): number => median(rounds.map((round) => round[key]));
  const p99 = `${of("alone").toFixed(0)} ms | ${of("beside").toFixed(0)} ms | ${(of("beside") / of("alone")).toFixed(2)}`;
  const thread = `${(of("share") * 100).toFixed(0)} % | ${of("longestMs").toFixed(0)} ms`;
  console.log(`| ${name} | ${p99} | ${thread} | ${mb(peakRss)} | ${mb(logged)} | ${JSON.stringify(heard)}`);
}
