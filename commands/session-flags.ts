/** Flags of every verb that opens sessions: how turns that come back are treated, and the tokens that were sampled. */
import { Option } from "commander";
import { ContinuityMode, Restore } from "../schema/session-spec.ts";

export type SessionFlags = { restore?: string; continuity?: string };

export function restoreOption(): Option {
  return new Option(
    "--restore <what>",
    "of a turn that comes back: put back what a serialiser changed, or all (full), or nothing (off)",
  ).choices(Restore.unwrap().options);
}

export function continuityOption(): Option {
  return new Option("--continuity <mode>", "auto: go on from the very tokens that were sampled; off: render every turn anew").choices(
    ContinuityMode.unwrap().options,
  );
}
