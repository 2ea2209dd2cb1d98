/** A line's words as a program and its arguments; a line that needs a shell is sh's. Graders look for `{runner}` among the words. */
export function testCommand(line: string): string[] {
  const words = line.trim().split(/ +/);
  return words.every(isPlain) && !/^\w+=/.test(words[0] ?? "") ? words : ["sh", "-c", line];
}

/** A shell would leave it as it is: no quotes, variables, patterns, braces or signs between commands. */
function isPlain(word: string): boolean {
  return /^(?:[\w./:@%+=,-]|\{runner\}|\{report\})+$/.test(word);
}
