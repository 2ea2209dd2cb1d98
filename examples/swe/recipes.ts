/** Ten fixed faults of published packages: where their sources come from, by digest, what an agent is told, and how they are tested. */

/** A file and its SHA-256. */
export type PinnedFile = readonly [name: string, sha256: string];

export type SweSource =
  | {
      kind: "debian";
      /** Folder of the archive's pool. */
      pool: string;
      orig: PinnedFile;
      /** The packaging, which holds the patches. */
      debian: PinnedFile;
      /** Patches that come first; then the one that mends the fault. */
      earlier: readonly string[];
      fix: string;
    }
  | { kind: "pypi"; name: string; before: PinnedFile; after: PinnedFile };

export type SweRecipe = {
  instance_id: string;
  repo: string;
  language: "python" | "c";
  source: SweSource;
  /** What the agent is told, in words of our own. */
  problem_statement: string;
  /** Globs: the part of the change that mends the fault, and the tests. What else the change does is left out. */
  sources: readonly string[];
  tests: readonly string[];
  /** Test files that are run, with blanks between them: by pytest where the language is Python. For C it is a line of bash that prints TAP. */
  run: string;
};

const jinja2 = {
  repo: "pallets/jinja",
  language: "python",
  sources: ["src/**"],
  tests: ["tests/**"],
} as const;
const jinja2Source = {
  kind: "debian",
  pool: "main/j/jinja2",
  orig: ["jinja2_3.1.2.orig.tar.gz", "31351a702a408a9e7595a8fc6150fc3f43bb6bf7e319770cbc0db9df9437e852"],
  debian: ["jinja2_3.1.2-1+deb12u3.debian.tar.xz", "acba69d6899482c9ac240143635a51239c564087512706d928a0a5b7503a3138"],
} as const;
const jinja2Patches = [
  "py3.9-fix-collections-import.patch",
  "0003-fix-nose-leftovers.patch",
  "0001-xmlattr-filter-disallows-keys-with-spaces.patch",
  "0002-disallow-invalid-characters-in-keys-to-xmlattr-filte.patch",
  "0006-Fix-CVE-2024-56201.patch",
] as const;

function jinja2Fix(at: 2 | 3 | 4): SweSource {
  return { ...jinja2Source, earlier: jinja2Patches.slice(0, at), fix: jinja2Patches[at] };
}

const cJson = { repo: "DaveGamble/cJSON", language: "c", sources: ["cJSON.c", "cJSON.h"], tests: ["tests/**"] } as const;
const cJsonSource = {
  kind: "debian",
  pool: "main/c/cjson",
  orig: ["cjson_1.7.15.orig.tar.gz", "5308fd4bd90cef7aa060558514de6a1a4a0819974a26e6ed13973c5f624c24b2"],
  debian: ["cjson_1.7.15-1+deb12u4.debian.tar.xz", "afd19a970966cf534ff1e9ec077d710a5e7e78eb4ec9b499c8bdc32e55da12cb"],
} as const;
const cJsonPatches = [
  "0001-add-null-checkings.patch",
  "0002-add-null-check-to-cjson-setvaluestring.patch",
  "0001-allocate-memory-for-the-temporary-buffer.patch",
] as const;

const httpParser = { repo: "nodejs/http-parser", language: "c", sources: ["http_parser.c", "http_parser.h"], tests: ["test.c"] } as const;
const httpParserSource = {
  kind: "debian",
  pool: "main/h/http-parser",
  orig: ["http-parser_2.9.4.orig.tar.gz", "467b9e30fd0979ee301065e70f637d525c28193449e1b13fbcb1b1fab3ad224f"],
  debian: ["http-parser_2.9.4-5.debian.tar.xz", "2e7306f26c7edcd5c236a32e574c3e4bbb77638917e1b7762ee072194a688682"],
} as const;
const httpParserPatches = [
  "cherry-pick.v2.9.4-4-g805a0d1.fix-test-numbers.patch",
  "cherry-pick.v2.9.4-6-gd9275da.fix-wsign-compare-warning.patch",
  "cherry-pick.v2.9.4-7-g4b99e42.test-content-length-header-parsing.patch",
  "cherry-pick.v2.9.4-8-ge13b274.allow-content-length-and-transfer-encoding-chunked.patch",
  "cherry-pick.v2.9.4-9-g4f15b7d.fix-sizeof-http-parser-assert.patch",
  "CVE-2020-8287.patch",
] as const;

function httpParserFix(at: 3 | 5): SweSource {
  return { ...httpParserSource, earlier: httpParserPatches.slice(0, at), fix: httpParserPatches[at] };
}

/** Each program of Unity prints `file:line:name:PASS`, and its totals at its end: one that crashes has none. */
const unity = String.raw`mkdir -p /tmp/programs; rm -f /tmp/points
for file in tests/*.c; do
  name=$(basename "$file" .c); [ "$name" = unity_setup ] && continue
  tcc -I tests/unity/src -o "/tmp/programs/$name" "$file" tests/unity_setup.c tests/unity/src/unity.c $(grep -q cJSON_Utils.h "$file" && echo cJSON_Utils.c) -lm || true
  (cd tests && timeout 60 "/tmp/programs/$name") > /tmp/log 2>&1 || true
  sed -nE "s,^[^:]+:[0-9]+:([^:]+):PASS$,ok $name \1,p; s,^[^:]+:[0-9]+:([^:]+):FAIL.*,not ok $name \1,p" /tmp/log >> /tmp/points
  grep -qE '^[0-9]+ Tests [0-9]+ Failures' /tmp/log && echo "ok $name ends" >> /tmp/points || echo "not ok $name ends" >> /tmp/points
done
echo "TAP version 13"; cat /tmp/points; echo "1..$(wc -l < /tmp/points)"`;

/** Without its scans, which parse each way to split three messages: they take half a minute, and ask nothing else. */
const oneProgram = `sed 's/^  test_scan(/  if (0) test_scan(/' test.c > /tmp/test.c
tcc -I . -o /tmp/program http_parser.c /tmp/test.c && timeout 60 /tmp/program > /tmp/log 2>&1 && point="ok" || point="not ok"
tail -n 5 /tmp/log; echo "TAP version 13"; echo "$point 1 - test.c"; echo "1..1"`;

export const recipes: readonly SweRecipe[] = [
  {
    ...jinja2,
    instance_id: "debian__jinja2-xmlattr-spaces",
    source: jinja2Fix(2),
    problem_statement:
      "The filter `xmlattr` writes keys of its mapping into the page as they are. A key with white space in it, such as `a onclick=evil`, adds attributes that the template's author did not write.\n\n`{{ {key: 'x'}|xmlattr }}` must raise `ValueError`, with a message that begins with `Spaces are not allowed`, where a key has any white space.",
    run: "tests/test_filters.py",
  },
  {
    ...jinja2,
    instance_id: "debian__jinja2-xmlattr-characters",
    source: jinja2Fix(3),
    problem_statement:
      "The filter `xmlattr` refuses keys with white space, but not keys with `/`, `>` or `=`. Each of them ends the name of an attribute in HTML, so such a key still adds other attributes.\n\nA key with any of these characters must raise `ValueError` with a message that begins with `Invalid character in attribute name`; so must, from now on, a key with white space (space, tab, newline, form feed, carriage return).",
    run: "tests/test_filters.py",
  },
  {
    ...jinja2,
    instance_id: "debian__jinja2-template-name",
    source: jinja2Fix(4),
    problem_statement:
      "The compiler writes the name of a template into the messages of the Python code that it makes. Where a template imports a name that another one does not have (`{% from 'macro' import m %}`), that message becomes an f-string, so braces in the name of the importing template are run as Python: a template `{bad}` fails with `NameError`.\n\nThe name is data. Using the missing import must raise `UndefinedError`, whatever the template is called.",
    run: "tests/test_compile.py tests/test_filters.py",
  },
  {
    instance_id: "pypi__sqlparse-comments",
    repo: "andialbrecht/sqlparse",
    language: "python",
    source: {
      kind: "pypi",
      name: "sqlparse",
      before: ["0.5.0", "714d0a4932c059d16189f58ef5411ec2287a4360f17cdd0edd2d09d4c5087c93"],
      after: ["0.5.1", "bb6b4df465655ef332548e24f08e205afc81b9ab86cb1c45657a7ff173a3a00e"],
    },
    problem_statement:
      "Five points of `sqlparse.format` and `sqlparse.split`:\n\n1. `strip_comments=True` removes white space beside a comment: `SELECT 1/*bar*/ AS foo` must become `SELECT 1 AS foo`. White space that is left over stays (`/* sql starts here */ select` becomes ` select`); `strip_whitespace=True` beside it removes that too.\n2. `strip_whitespace=True` leaves the blank before a closing parenthesis: `( where foo = bar  ) from` must become `(where foo = bar) from`.\n3. A new option `compact=True` beside `reindent=True` puts no line breaks into a CASE: `case when foo then 1 else bar end` stays as it is.\n4. `split` parts a statement in the middle where a BEGIN block has several CASE clauses.\n5. `NULLS FIRST` and `NULLS LAST`, alone or behind `ASC` or `DESC`, are one token of type `Keyword.Order`.",
    sources: ["sqlparse/**"],
    tests: ["tests/**"],
    run: "tests/test_format.py tests/test_split.py",
  },
  {
    instance_id: "pypi__parse-hyphen",
    repo: "r1chardj0n3s/parse",
    language: "python",
    source: {
      kind: "pypi",
      name: "parse",
      before: ["1.20.1", "09002ca350ad42e76629995f71f7b518670bcf93548bdde3684fd55d2be51975"],
      after: ["1.20.2", "b41d604d16503c79d81af5165155c0b20f6c8d6c559efa66b4b695c3e5a0a0ce"],
    },
    problem_statement:
      "A field whose name has a hyphen, such as `{user-id}`, is not recognised as a field: it is matched as plain text.\n\nSuch a name must work as others do: `parse.search('/sub/{user-id}/', text)['user-id']` is what stands there. In `Parser(…).named_fields` the hyphen is an underscore, and names that differ in hyphens and underscores alone must not be mixed up.",
    sources: ["parse.py"],
    tests: ["tests/**"],
    run: "tests/test_parse.py",
  },
  {
    instance_id: "pypi__parse-subseconds",
    repo: "r1chardj0n3s/parse",
    language: "python",
    source: {
      kind: "pypi",
      name: "parse",
      before: ["1.20.0", "bd28bae37714b45d5894d77160a16e2be36b64a3b618c81168b3684676aa498b"],
      after: ["1.20.1", "09002ca350ad42e76629995f71f7b518670bcf93548bdde3684fd55d2be51975"],
    },
    problem_statement:
      "In a format such as `{t:%H:%M:%S.%f}` the directive `%f` takes exactly six digits, so `13:23:27.123` is not parsed. `strptime` of Python takes one to six digits, and so must we.\n\nBeside that, a compiled parser should tell its format: `parse.compile('hello {}').format` is `'hello {}'`, and cannot be set.",
    sources: ["parse.py"],
    tests: ["tests/**"],
    run: "tests/test_parse.py",
  },
  {
    ...cJson,
    instance_id: "debian__cjson-null-checks",
    source: { ...cJsonSource, earlier: [], fix: cJsonPatches[0] },
    problem_statement:
      "`cJSON_SetValuestring` and `cJSON_InsertItemInArray` crash on some arguments: the first where the item or the new text is NULL or the item has no text, the second where the new item is NULL.\n\nBoth must answer with NULL and false instead.",
    run: unity,
  },
  {
    ...cJson,
    instance_id: "debian__cjson-long-numbers",
    source: { ...cJsonSource, earlier: cJsonPatches.slice(0, 2), fix: cJsonPatches[2] },
    problem_statement:
      "`parse_number` in cJSON.c copies a number into a buffer of 64 bytes before it reads it. A longer number, such as a one with eighty zeros before its exponent, is cut there: it is read as another number, or what is left of it is a syntax error.\n\nNumbers of any length must be read whole.",
    run: unity,
  },
  {
    ...httpParser,
    instance_id: "debian__http-parser-transfer-encoding",
    source: httpParserFix(5),
    problem_statement:
      "Where a request has several `Transfer-Encoding` headers, the parser keeps the flag `F_CHUNKED` of an earlier one: `Transfer-Encoding: chunked` and then `Transfer-Encoding: identity` is read as chunked. Headers of one name are one list, so only the last coding counts.\n\nA header of that name must clear the flag before its value is read.",
    run: oneProgram,
  },
  {
    ...httpParser,
    instance_id: "debian__http-parser-chunked-length",
    source: httpParserFix(3),
    problem_statement:
      "A message with `Content-Length` and `Transfer-Encoding: chunked` is always refused. RFC 7230 lets a receiver take it, with the length left out of account, and some users need that.\n\nAdd a bit `allow_chunked_length` to `struct http_parser`: where it is set, such a message is parsed as chunked. Where it is not set, such a message is refused as before.",
    run: oneProgram,
  },
];
