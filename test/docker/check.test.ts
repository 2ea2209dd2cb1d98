import { docker } from "../../sandboxes/docker.ts";
import { checkAll } from "../tasks/check-all.ts";

checkAll(docker, { tier: "T2", isolation: "container" }, ["docker"]);
