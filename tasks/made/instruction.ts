/**
 * What an agent is told, out of the message of a commit. It is a weak instruction: it was written for people who see the
 * change. Lines for tools and reviewers go, and so do links and names that lead to the change or to its hidden tests.
 */

const preface = "Change the project in this folder as its authors describe it. Their tests of the change are hidden.";

/** Stands where something was taken out. */
const taken = "[…]";

/** Longer ones are logs and lists of many changes. */
const longest = 10_000;

/** Trailers and lines that tools write. */
const forTools = [
  /^[\w-]+-by: /i,
  /^(?:cc|change-id|pr-url|refs?|see|link|bug|issues?|fix(?:es|ed)?|close[sd]?|resolve[sd]?|backport[\w-]*|depends-on|differential revision|git-svn-id)\s*:/i,
  /^\(cherry picked from commit [0-9a-f]+\)$/i,
  /^\s*\[(?:ci skip|skip ci|no ci)\]\s*$/i,
];

/** Places that show the change: links, numbers of issues and requests, and ids of commits. */
const places = [
  /\((?:(?:close[sd]?|fix(?:es|ed)?|resolve[sd]?|refs?|see)\s+)?(?:[\w.-]+\/[\w.-]+)?(?:#|GH-|!)\d+\)/gi,
  /\b(?:close[sd]?|fix(?:es|ed)?|resolve[sd]?|refs?|see)\s+(?:issue\s+)?(?:[\w.-]+\/[\w.-]+)?(?:#|GH-)\d+\b/gi,
  /\bhttps?:\/\/\S+/gi,
  /\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{9,64}\b/g,
];

/** `leaks`: names of hidden tests and of their files; a word that holds one is taken out. null: nothing is left to read. */
export function instructionOf(message: string, leaks: readonly string[]): string | null {
  if (message.length > longest) return null;
  const lines = message.split(/\r?\n/).filter((line) => !forTools.some((pattern) => pattern.test(line)));
  const kept = lines.map((line) => withoutLeaks(withoutPlaces(line), leaks).trimEnd());
  const text = kept
    .join("\n")
    .replace(/\n{3,}/g, "\n\n")
    .trim();
  return /\w{2}/.test(text) ? `${preface}\n\n${text.replace(/^/gm, "> ").replace(/^> $/gm, ">")}\n` : null;
}

function withoutPlaces(line: string): string {
  return places.reduce((text, place) => text.replace(place, taken), line);
}

function withoutLeaks(line: string, leaks: readonly string[]): string {
  return line.replace(/\S+/g, (word) => (leaks.some((leak) => word.includes(leak)) ? taken : word));
}

/** The words by which a message would name the hidden tests: the names of their files, and names of tests that are no plain words. */
export function leaksOf(files: readonly { path: string }[], tests: readonly string[]): string[] {
  const names = tests.flatMap((name) => name.match(/\w+/g) ?? []).filter((word) => /^test_|_test|[a-z]Test|[Tt]est[A-Z]/.test(word));
  return [...new Set([...files.map(({ path }) => path.slice(path.lastIndexOf("/") + 1)), ...names])];
}
