/** What a contestant tells of itself while it works: how late its event loop is, and how large it is at most. */
import { monitorEventLoopDelay } from "node:perf_hooks";

export type Watched = { delayP99Ms: number; peakRss: number };

/** Methods for `answerParent`. */
export function watching() {
  const delay = monitorEventLoopDelay({ resolution: 5 });
  let peakRss = 0;
  let timer: NodeJS.Timeout | undefined;
  return {
    watch: (): number => {
      const { rss } = process.memoryUsage();
      peakRss = rss;
      timer = setInterval(() => {
        peakRss = Math.max(peakRss, process.memoryUsage.rss());
      }, 250);
      delay.reset();
      delay.enable();
      return rss;
    },
    watched: (): Watched => {
      clearInterval(timer);
      delay.disable();
      return { delayP99Ms: delay.percentile(99) / 1e6, peakRss };
    },
  };
}
