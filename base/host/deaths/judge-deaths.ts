/**
 * Whose doing the death of a process was. One that an exception or V8 ended was ended by something that ran in it:
 *
 *   - by what it is known to come from, or by what ran alone: that is set aside, after this one death;
 *   - by one of several: all of them are suspects, and run one at a time from then on, beside what is no suspect. The next
 *     such death sets the one suspect aside that ran. So a culprit costs two deaths at most, and no other work is lost.
 *
 * A kill from outside may have nothing to do with the work that ran. So a work is set aside only after `mostKills` kills. A kill
 * does not count if the work got further than ever before, or waited for its turn.
 */

export type Death = {
  /** crash: by an exception or a fatal error in the process. kill: from outside. */
  by: "crash" | "kill";
  /** What it is known to come from. */
  culprit: string | null;
  /** One line. */
  why: string;
  /** Attempts (`name#number`) that ran. */
  running: string[];
  /** Attempts that waited for something that they need. */
  waiting: string[];
  /** Suspects that waited for their turn: they did nothing in this process. */
  queued: string[];
  /** Attempt -> its finished calls, those of the attempts that it continues included. Absent: none, or unknown. */
  calls: Record<string, number>;
};

export type DeathEntry = ({ type: "death" } & Death) | { type: "forgiven"; names: string[] };

/** `aside`: name -> why, in a sentence. `blameless`: attempts that ended with the process, but are not suspected of its death. */
export type Blame = { aside: Map<string, string>; suspects: Set<string>; blameless: string[] };

/** An agent that takes its process down with it must not do so for ever. Real machines do not die ten times under one work. */
export const mostKills = 10;

/**
 * The most kills even if each process gets further. Without a bound, an agent that kills its process after each call would run for
 * ever. A day on machines that are taken away every half hour has 48.
 */
export const mostLives = 50;

/** A process that died while it started did not report the deaths before it, so the latest few are reported again. */
const latestDeaths = 3;

export function judgeDeaths(entries: readonly DeathEntry[]): Blame {
  const aside = new Map<string, string>();
  const suspects = new Set<string>();
  const lives = new Map<string, Lives>();
  const blameless: string[][] = [];
  for (const entry of entries) {
    if (entry.type === "forgiven") {
      for (const name of entry.names) for (const known of [aside, suspects, lives]) known.delete(name);
      continue;
    }
    const further = entry.running.filter((attempt) => getsFurther(lives, attempt, entry.calls[attempt] ?? 0));
    blameless.push([...entry.waiting, ...entry.queued, ...further]);
    if (entry.by === "kill") {
      for (const attempt of entry.running) {
        const count = countKill(lives, nameOf(attempt), further.includes(attempt));
        if (count !== null) aside.set(nameOf(attempt), `the process was killed ${count} times while it ran`);
      }
      continue;
    }
    // A waiting attempt may crash the process too, for example while its needs are prepared.
    const running = [...new Set([...entry.running, ...entry.waiting].map(nameOf))];
    const suspected = running.filter((name) => suspects.has(name));
    const [culprit, how] = culpritOf(entry.culprit, running, suspected);
    if (culprit === null) for (const name of running) suspects.add(name);
    else aside.set(culprit, `the process ended ${how} (${entry.why})`);
  }
  for (const name of aside.keys()) suspects.delete(name);
  return { aside, suspects, blameless: blameless.slice(-latestDeaths).flat() };
}

/** `calls`: its most finished calls at any death. `inVain`: kills at which it had no more calls than before. */
type Lives = { calls: number; kills: number; inVain: number };

function livesOf(lives: Map<string, Lives>, name: string): Lives {
  const known = lives.get(name) ?? { calls: 0, kills: 0, inVain: 0 };
  lives.set(name, known);
  return known;
}

function getsFurther(lives: Map<string, Lives>, attempt: string, calls: number): boolean {
  const known = livesOf(lives, nameOf(attempt));
  const isFurther = calls > known.calls;
  known.calls = Math.max(known.calls, calls);
  return isFurther;
}

/** Counts a kill. Returns the number of kills if they are too many, else null. */
function countKill(lives: Map<string, Lives>, name: string, isFurther: boolean): number | null {
  const known = livesOf(lives, name);
  known.kills++;
  if (!isFurther) known.inVain++;
  return known.inVain >= mostKills || known.kills >= mostLives ? known.kills : null;
}

function culpritOf(known: string | null, running: string[], suspected: string[]): [name: string | null, how: string] {
  if (known !== null) return [known, "by an exception in it"];
  if (running.length === 1) return [running[0] ?? null, "while it alone ran"];
  if (suspected.length === 1) return [suspected[0] ?? null, "a second time while it ran, the only suspect"];
  return [null, ""];
}

/** What an attempt is one of. */
export function nameOf(attempt: string): string {
  const at = attempt.lastIndexOf("#");
  return at === -1 ? attempt : attempt.slice(0, at);
}

/** The number of the attempt. */
export function numberOf(attempt: string): number {
  return Number(attempt.slice(nameOf(attempt).length + 1));
}
