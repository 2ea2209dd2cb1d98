export { EngineAddress } from "./engine-connection.ts";
