import { docker } from "../../sandboxes/docker.ts";
import { checkAll } from "../tasks/check-all.ts";

checkAll(docker, 3, "container", ["docker"]);
