export { type AccessRole, type AccessToken, roles } from "./access.ts";
export { ask, connectionsTo, type ServiceAddress } from "./client/ask.ts";
export type { SetEvaluation, SetStepFigures } from "./figure-route.ts";
export { Callbacks } from "./polar/callbacks.ts";
export { ServiceListener } from "./service-listener.ts";
export type { ServiceParts } from "./service-parts.ts";
export { GroupHints, type HintAddresses } from "./webhooks/group-hints.ts";
export { refusedAddress } from "./webhooks/post-signed.ts";
