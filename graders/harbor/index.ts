export { fetchingScripts } from "./fetching-tools.ts";
export { parseRewardRule, RewardRule } from "./reward-rule.ts";
export { terminalParserNames } from "./terminal-parsers.ts";
