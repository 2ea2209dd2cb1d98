/** Why a change becomes no task: remembered with the change, so that it is not tried again. */

export const noTaskReasons = {
  not_files: "it changes a link, a submodule, or a file whose path cannot be written",
  too_large: "it is larger than a task may be",
  not_text: "its change or its tests are no text in UTF-8",
  no_message: "its message says nothing that an agent may read",
  no_report: "its tests give no complete report",
  too_slow: "its tests do not end in time, or take more memory than there is",
  no_fail_to_pass: "no test fails before it and passes after it",
  flaky: "its tests say something else when they are run again",
  not_gradable: "its tests break their grading",
} as const;

export type NoTaskReason = keyof typeof noTaskReasons;

export class NoTask extends Error {
  readonly reason: NoTaskReason;

  /** `detail`: what was found in this change. */
  constructor(reason: NoTaskReason, detail: string) {
    super(`${noTaskReasons[reason]}: ${detail}`);
    this.reason = reason;
  }
}
