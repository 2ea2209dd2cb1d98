/** How a person lets a harness that has ended go on in the same conversation: launched so that it is kept, then taken up again. */
import type { HarnessLaunch } from "../../harnesses/harness.ts";

export type GoingOn = {
  /** The first launch, without the flag that keeps no conversation. */
  kept(launch: HarnessLaunch): HarnessLaunch;
  /** A later launch with more to say, in the conversation that was kept last. */
  again(launch: HarnessLaunch): HarnessLaunch;
};

export const goingOn: Partial<Record<string, GoingOn>> = {
  pi: kept("--no-session", "--continue"),
  codex: kept("--ephemeral", "resume", "--last"),
  "claude-code": kept(null, "--continue"),
};

/** `--` stands before what is said to a harness, and flags before that. */
function kept(ephemeral: string | null, ...flags: string[]): GoingOn {
  const keep = (launch: HarnessLaunch) => ({ ...launch, argv: launch.argv.filter((each) => each !== ephemeral) });
  return {
    kept: keep,
    again(launch) {
      const { argv, ...rest } = keep(launch);
      return { ...rest, argv: argv.toSpliced(argv.indexOf("--"), 0, ...flags) };
    },
  };
}
