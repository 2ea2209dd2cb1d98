/** A recorded run: what was printed, and what is true of each test. `whole`: the run came to its own end. */
export type RecordedLog = {
  framework: string;
  version: string;
  parser: string;
  scenario: string;
  command: string;
  log: string;
  whole: boolean;
  truth: Record<string, "passed" | "failed" | "skipped">;
};
