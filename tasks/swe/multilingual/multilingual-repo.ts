/** How instances of one repository are tested, as swebench 4.1 says it. */

type Tests = readonly [
  /** The number of the instance's pull request. */
  version: string,
  /** The whole test command: lines of bash. */
  command: string,
  /** Commands that build again with the work in place. Default: those of the repository. */
  build?: string,
];

export type MultilingualRepo = readonly [repo: string, parser: string, build: string, tests: readonly Tests[]];
