import type { OnTaskLeftOut } from "./accepted-tasks.ts";

/** Says each task that is left out in a note; `named` gets its sentence too, for what is said at the end. */
export function noteLeftOut(note: (text: string) => void, named: string[] = []): OnTaskLeftOut {
  return ({ message }) => {
    note(`LEFT OUT: ${message}`);
    named.push(message);
  };
}
