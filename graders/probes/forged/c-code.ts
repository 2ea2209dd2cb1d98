/** Code in C that a probe adds to a source: it compiles as C99 and as C++, also where warnings are errors. */

/** A text as a literal of C. JSON writes control characters in a way that C refuses, and two question marks may be a trigraph. */
export function cString(text: string): string {
  const octal = (_: string, hex: string): string => `\\${Number.parseInt(hex, 16).toString(8).padStart(3, "0")}`;
  return JSON.stringify(text)
    .replace(/\\u([0-9a-f]{4})/g, octal)
    .replace(/\?(?=\?)/g, '?""');
}

/** A forged report is longer than what C99 asks each compiler to take as one literal. */
export const cIncludes = `#ifdef __GNUC__
#pragma GCC diagnostic ignored "-Woverlength-strings"
#endif
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>`;

/**
 * The body runs when the program is loaded, before its `main`. tcc calls no constructors, so libc's first function of a
 * program is replaced too. What is weak may stand in several sources.
 */
export function atStart(body: string): string {
  return `${cIncludes}
#ifdef __TINYC__
typedef int probe_main(int (*)(int, char **, char **), int, char **, void (*)(void), void (*)(void), void (*)(void), void *);
extern void *probe_find(void *, const char *) __asm__("dlsym");
#endif
__attribute__((weak)) int probe_begun;
__attribute__((constructor)) static void probe_begin(void) {
  if (probe_begun++) return;
  {
${body}
  }
}
#ifdef __TINYC__
probe_main probe_start __asm__("__libc_start_main");
__attribute__((weak)) int probe_start(int (*run)(int, char **, char **), int count, char **words, void (*init)(void), void (*fini)(void), void (*linker)(void), void *end) {
  union { void *found; probe_main *call; } libc;
  probe_begin();
  libc.found = probe_find((void *)-1L, "__libc_start_main");
  return libc.call(run, count, words, init, fini, linker, end);
}
#endif`;
}

/** A result that is not looked at is a warning. */
export function cPrint(text: string): string {
  return `if (write(1, ${cString(text)}, ${Buffer.byteLength(text)}) < 0) {}`;
}

/** Statements that write a file, where that is allowed. */
export function cWrite(path: string, text: string): string {
  return `{ int file = open(${cString(path)}, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (file >= 0) { if (write(file, ${cString(text)}, ${Buffer.byteLength(text)}) < 0) {} close(file); } }`;
}
