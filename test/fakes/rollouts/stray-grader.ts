/** A grader that is a plug-in with a bug: it throws where no step awaits it, until the file `mended` of its task says that it is mended. */
import { existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { GraderSpec } from "../../../base/schema/task.ts";
import type { Grader } from "../../../graders/grader.ts";

type Stray = GraderSpec & { does: "right" | "throws" | "nameless"; mended: string };

let isNameless = false;
/** Made where the plug-in is loaded, and so in no rollout's name. */
setInterval(() => {
  if (isNameless) throw new Error("a plug-in's own timer threw");
}, 5).unref();

/** Whatever the signal says. */
const never = new Promise<never>(() => undefined);

export default {
  name: "stray",
  title: "Throws where no step awaits it",
  tier: () => "T3",
  async grade({ does, mended }) {
    // So long siblings are at work beside it.
    if (does === "right") await sleep(1_000);
    else if (!existsSync(mended)) {
      await sleep(300);
      if (does === "nameless") isNameless = true;
      else
        setTimeout(() => {
          throw new Error("the grader's callback threw");
        }, 1);
      await never;
    }
    return {
      reward: 1,
      components: {},
      status: "graded",
      tier: "T3",
      isolation: "container",
      grader: "stray",
      evidence: {},
      error: null,
      duration_ms: 0,
    };
  },
} satisfies Grader<Stray>;
