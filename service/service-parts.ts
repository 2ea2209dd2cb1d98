/** What the routes of a service work on. */
import type { Blobs } from "../blobs/index.ts";
import type { Ledger } from "../ledger/index.ts";
import type { Task } from "../schema/task.ts";
import type { ServiceControl } from "./service-control.ts";

export type ServiceParts = {
  ledger: Ledger;
  blobs: Blobs;
  /** A task by its name in the task sets of the service, or as a value. Throws what is wrong with it. */
  taskOf(given: unknown): Promise<Task>;
  /** Throws `harness_unknown`. */
  checkHarness(name: string): void;
  /** null: its engines are at nodes in other processes. */
  control: ServiceControl | null;
};
