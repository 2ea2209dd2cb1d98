export {
  type AskedTask,
  type Delivered,
  type DeliveredGroup,
  type DeliveredResult,
  type DeliveryOptions,
  type FromCursor,
  RolloutSet,
} from "./rollout-set.ts";
export { type ClientOptions, ServiceClient, type WeightUpdate } from "./service-client.ts";
