export { graderServers, NamedGraderServer } from "./grader-servers.ts";
