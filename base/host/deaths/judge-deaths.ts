/**
 * Whose doing the death of a process was. One that an exception or V8 ended was ended by something that ran in it:
 *
 *   - by what it is known to come from, or by what ran alone: that is set aside, after this one death;
 *   - by one of several: all of them are suspects, and run one at a time from then on, beside what is no suspect. The next
 *     such death sets the one suspect aside that ran. So a culprit costs two deaths at most, and no other work is lost.
 *
 * One that was killed from outside says nothing of what ran: a work is set aside only after so many that chance is no reason. Those
 * in which it got further than ever before do not count towards them, and neither do those in which it waited for its turn.
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
  /** Those that waited for their turn, or for what they need. */
  waiting: string[];
  /** Attempt -> calls that it had finished, those of the attempts that it goes on from included. Absent: none, or it is not known. */
  calls: Record<string, number>;
};

export type DeathEntry = ({ type: "death" } & Death) | { type: "forgiven"; names: string[] };

/** `aside`: name -> why, in a sentence. `blameless`: attempts that the latest deaths say nothing of, though they ended with the process. */
export type Blame = { aside: Map<string, string>; suspects: Set<string>; blameless: string[] };

/** An agent that takes its process down with it must not do so for ever. Real machines do not die ten times under one work. */
export const mostKills = 10;

/**
 * The bound where each life gets further. An agent that ends its process after each call gets further too, so there is one. A long
 * rollout on machines that are taken away every half hour of a day meets fewer.
 */
export const mostLives = 50;

/** A process that died while it started has told no one of the deaths before it. */
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
    blameless.push([...entry.waiting, ...further]);
    if (entry.by === "kill") {
      for (const attempt of entry.running) {
        const count = countKill(lives, nameOf(attempt), further.includes(attempt));
        if (count !== null) aside.set(nameOf(attempt), `the process was killed ${count} times while it ran`);
      }
      continue;
    }
    // What waits may crash a process too, as by what is made ready for it.
    const running = [...new Set([...entry.running, ...entry.waiting].map(nameOf))];
    const suspected = running.filter((name) => suspects.has(name));
    const [culprit, how] = culpritOf(entry.culprit, running, suspected);
    if (culprit === null) for (const name of running) suspects.add(name);
    else aside.set(culprit, `the process ended ${how} (${entry.why})`);
  }
  for (const name of aside.keys()) suspects.delete(name);
  return { aside, suspects, blameless: blameless.slice(-latestDeaths).flat() };
}

/** `calls`: the most that it had finished when a process died. `inVain`: kills after which it was no further than before. */
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

/** How many kills are too many; null: they are not. */
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

/** Which of them it is. */
export function numberOf(attempt: string): number {
  return Number(attempt.slice(nameOf(attempt).length + 1));
}
