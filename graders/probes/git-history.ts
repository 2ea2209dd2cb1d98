import type { Probe } from "./probe.ts";

/** Takes each later state that the repository still holds; the last one that applies stays. At most 20 of them. */
export const gitHistory: Probe = {
  name: "git-history",
  title: "takes the fix out of the repository's history: branches, tags, reflog, stash, lost commits",
  rows: [14],
  languages: "any",
  cure: "deliver one commit without history (`environment.conceal`)",
  script: () => `command -v git >/dev/null 2>&1 && [ -d .git ] || exit 0
g() { git -c safe.directory='*' -c core.fsmonitor=false -c core.hooksPath=/dev/null "$@"; }
head=$(g rev-parse HEAD 2>/dev/null) || exit 0
{ g rev-list --all --reflog --date-order; g fsck --lost-found --no-progress 2>/dev/null | sed -n 's/.*dangling commit //p'; } | sort -u |
while read -r one; do [ "$one" != "$head" ] && g merge-base --is-ancestor "$head" "$one" 2>/dev/null && echo "$one"; done | head -20 |
while read -r one; do g checkout -q -f "$one" -- . 2>/dev/null; done
true`,
};
