/** Waits for what will be true soon. */
export async function until(isTrue: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 20_000;
  while (!(await isTrue())) {
    if (Date.now() > deadline) throw new Error("waited 20 s in vain");
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
