/** A line's words as a program and its arguments; a line that needs a shell is sh's. Graders look for `{runner}` among the words. */
export function testCommand(line: string): string[] {
  const words = line.trim().split(/\s+/);
  // Without quotes, variables, patterns, pipes and assignments in front a shell would make the same words of it.
  return /^[\w\s./:@%+=,{}-]+$/.test(line) && !/^\w+=/.test(line.trim()) && !/,\w*\}|\{\}/.test(line) ? words : ["sh", "-c", line];
}
