/** `npm run packs`: installs the packs of all harnesses, so that `npm test` leaves none of their tests out. */

import { ensurePack } from "../harnesses/pack.ts";
import { harnesses } from "../harnesses/registry.ts";

for (const harness of harnesses) {
  const pack = await ensurePack(harness, { signal: AbortSignal.timeout(15 * 60_000), progress: (line) => console.log(line) });
  console.log(`${harness.title} ${pack.version}: ${pack.folder}`);
}
