/**
 * Whose doing the death of a process was. One that an exception or V8 ended was ended by something that ran in it:
 *
 *   - by what it is known to come from, or by what ran alone: that is set aside, after this one death;
 *   - by one of several: all of them are suspects, and run one at a time from then on, beside what is no suspect. The next
 *     such death sets the one suspect aside that ran. So a culprit costs two deaths at most, and no other work is lost.
 *
 * One that was killed from outside says nothing of what ran: a work is set aside only after so many that chance is no reason.
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
};

export type DeathEntry = ({ type: "death" } & Death) | { type: "forgiven"; names: string[] };

/** `aside`: name -> why, in a sentence. */
export type Blame = { aside: Map<string, string>; suspects: Set<string> };

/** An agent that takes its process down with it must not do so for ever. Real machines do not die ten times under one work. */
export const mostKills = 10;

export function judgeDeaths(entries: readonly DeathEntry[]): Blame {
  const aside = new Map<string, string>();
  const suspects = new Set<string>();
  const kills = new Map<string, number>();
  for (const entry of entries) {
    if (entry.type === "forgiven") {
      for (const name of entry.names) for (const known of [aside, suspects, kills]) known.delete(name);
      continue;
    }
    const running = [...new Set(entry.running.map(nameOf))];
    if (entry.by === "kill") {
      for (const name of running) {
        const count = (kills.get(name) ?? 0) + 1;
        kills.set(name, count);
        if (count >= mostKills) aside.set(name, `the process was killed ${count} times while it ran`);
      }
      continue;
    }
    const suspected = running.filter((name) => suspects.has(name));
    const [culprit, how] = culpritOf(entry.culprit, running, suspected);
    if (culprit === null) for (const name of running) suspects.add(name);
    else aside.set(culprit, `the process ended ${how} (${entry.why})`);
  }
  for (const name of aside.keys()) suspects.delete(name);
  return { aside, suspects };
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
