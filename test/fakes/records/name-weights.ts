/** The weights get a name in the ledger, as `PUT /control/policy` gives them one. */
import type { Ledger } from "../../../service/ledger/index.ts";

/** `v7` for the step 7. `engines`: null for those of the policy. */
export function nameWeights(ledger: Ledger, step: number | null, engines: string[] | null = null) {
  const policy = { version: `v${step}`, step };
  return ledger.order((state, order) => ({ ...state, policies: [...state.policies, { order, engines, engine_version: null, policy }] }));
}
