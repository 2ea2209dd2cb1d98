import { AlidadeError } from "../base/errors.ts";

/** Linux takes at most 128 KiB in one argument of a command (MAX_ARG_STRLEN); a little is left for the terminator. */
const longestArgument = 128 * 1024 - 64;

/** A slash in front is a command to several harnesses (`/init …`); a line break before it makes it text. */
export function asText(instruction: string): string {
  return instruction.startsWith("/") ? `\n${instruction}` : instruction;
}

/** The instruction as one argument of a command line, refused where the kernel would refuse it with a bare E2BIG. */
export function checkedInstruction(instruction: string): string {
  const bytes = Buffer.byteLength(instruction);
  if (bytes > longestArgument) {
    throw new AlidadeError(
      "task_invalid",
      `The instruction has ${bytes} bytes; a harness takes at most ${longestArgument} on its command line. Put the long part into a file of the task and name it.`,
      { param: "instruction" },
    );
  }
  if (instruction.includes("\0")) {
    throw new AlidadeError("task_invalid", "The instruction holds a NUL character, which no command line can carry.", {
      param: "instruction",
    });
  }
  return instruction;
}
