const pauseMs = 500;

/** Returns a function that runs `work` at most twice a second, however often it is called. Callers share a run that is under way. */
export function paced(work: () => Promise<void>): () => Promise<void> {
  let ended = Date.now();
  let running: Promise<void> | null = null;
  return () => {
    if (running === null && Date.now() - ended < pauseMs) return Promise.resolve();
    running ??= work().finally(() => {
      ended = Date.now();
      running = null;
    });
    return running;
  };
}
