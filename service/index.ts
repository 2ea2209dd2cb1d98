export { type AccessRole, type AccessToken, roles } from "./access.ts";
export { ServiceListener } from "./service-listener.ts";
export type { ServiceParts } from "./service-parts.ts";
