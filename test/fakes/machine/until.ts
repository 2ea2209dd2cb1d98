type Patience = { ms?: number; said?: () => Promise<string> };

/** Waits for what will be true soon. `said`: what is told after a wait in vain. */
export async function until(isTrue: () => boolean | Promise<boolean>, { ms = 20_000, said }: Patience = {}): Promise<void> {
  const deadline = Date.now() + ms;
  while (!(await isTrue())) {
    if (Date.now() > deadline) throw new Error(`waited ${ms / 1_000} s in vain${said ? `: ${await said()}` : ""}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
