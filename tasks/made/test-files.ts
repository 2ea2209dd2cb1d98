/** Which files of a repository are tests, where its owner does not say: the names that test frameworks look for, and what lies beside. */
export const usualTests: readonly string[] = [
  ...["test/**", "tests/**", "__tests__/**", "spec/**", "specs/**", "testing/**", "testdata/**"].map((folder) => `**/${folder}`),
  ...["test_*.py", "*_test.py", "tests.py", "conftest.py", "*_test.go", "*_test.rs", "*_test.c", "*_test.cc", "*_test.cpp"].map(anywhere),
  ...["*.test.*", "*.spec.*", "*_spec.rb", "*_test.rb", "*Test.java", "*Tests.java", "*IT.java", "*Test.kt", "*Test.php"].map(anywhere),
];

function anywhere(name: string): string {
  return `**/${name}`;
}
