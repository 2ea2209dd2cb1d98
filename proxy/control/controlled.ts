/** What of the proxy the control listener reads and changes. */

import type { Policy } from "../../base/schema/policy.ts";
import type { RewardComponent } from "../../base/schema/reward-component.ts";
import type { NewSession } from "../../base/schema/session-spec.ts";
import type { Trajectory } from "../../base/schema/trajectory.ts";
import type { MetricFamily } from "../../base/wire/prometheus-text.ts";
import type { EnginePool } from "../pool/engine-pool.ts";
import type { WeightFences } from "../pool/weight-fence.ts";
import type { Session } from "../session/session.ts";
import type { Sessions } from "../session/sessions.ts";

export interface Controlled {
  readonly pool: EnginePool;
  readonly fences: WeightFences;
  readonly sessions: Sessions;
  /** Figures of the process around it, for a monitor. */
  families(): MetricFamily[];
  /** The policy of the first engine; null when none was named. */
  readonly policy: Policy | null;
  /** By its id or that of its rollout. Throws `not_found`. */
  session(name: string): Session;
  /** The id of the session with that id or rollout. */
  idOf(name: string): string;
  openSession(spec: Partial<NewSession>): Promise<{ session: Session; key: string }>;
  envOf(key: string): Record<string, string>;
  /** The revision that it became. Throws `not_found`. */
  reward(
    id: string,
    reward: number | null,
    components: Record<string, number | null>,
    scopedComponents?: RewardComponent[],
  ): Promise<number>;
  trajectory(sessionId: string): Promise<Trajectory>;
}
