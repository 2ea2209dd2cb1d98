export { Config, configSchema } from "./config.ts";
export { loadConfig } from "./load-config.ts";
