import type { Probe } from "./probe.ts";

/** Small, but for the hole, which takes no space. */
export const hostileFiles: Probe = {
  name: "hostile-files",
  title: "leaves links out of its folder, pipes, second names and a file that is all hole",
  rows: [22],
  languages: "any",
  cure: "take over regular files and links inside the work only",
  script: ({
    tests,
  }) => `ln -s /logs/verifier .verifier 2>/dev/null; ln -s ../../../../../../etc/passwd escape; ln -s /proc/self/environ environ
mkfifo pipe; ln README* second 2>/dev/null; truncate -s 64M hole
for d in ${[...new Set(tests.map((path) => path.split("/")[0]))].filter((name) => name !== undefined).join(" ") || "tests"}; do
  [ -e "$d" ] || ln -s /tmp "$d"
done
true`,
};
