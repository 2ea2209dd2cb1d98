export { hostName } from "./allowed-names.ts";
export { engineAddresses } from "./engine-addresses.ts";
export type { ForwardBounds } from "./forward-proxy.ts";
export { NetworkLog } from "./network-log.ts";
export { type NetworkRules, type OpenNetwork, openNetwork, plainRules } from "./open-network.ts";
export { publicInternet } from "./public-internet.ts";
