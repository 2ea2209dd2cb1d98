/** Says how the repositories of SWE-bench and SWE-Gym are tested, by the tables of their harnesses (swebench 4.1, SWE-Gym's fork). */

export type RepoTests = {
  /** The names of the patched test files are added to it. */
  command: string;
  /** Name of the log's parser. */
  parser: string;
  /** Shell lines that run before it. */
  before?: string;
  /** Commands of the harness that build again with the work in place, and need no network. */
  build?: string;
};

const pytest = "pytest -rA";
const utf8 = "export LANG=en_US.UTF-8 LC_ALL=en_US.UTF-8 LANGUAGE=en_US:en";
const django = "./tests/runtests.py --verbosity 2 --settings=test_sqlite --parallel 1";

const of = (command: string, parser: string, more: Pick<RepoTests, "before" | "build"> = {}): RepoTests => ({ command, parser, ...more });

const sweBench: readonly (readonly [string, RepoTests])[] = [
  ["astropy/astropy", of(pytest, "parse_log_astropy")],
  ["django/django", of(django, "parse_log_django", { before: utf8 })],
  ["marshmallow-code/marshmallow", of(pytest, "parse_log_marshmallow")],
  ["matplotlib/matplotlib", of(pytest, "parse_log_matplotlib")],
  ["mwaskom/seaborn", of("pytest --no-header -rA", "parse_log_seaborn")],
  ["pallets/flask", of(pytest, "parse_log_flask")],
  ["psf/requests", of(pytest, "parse_log_requests")],
  ["pvlib/pvlib-python", of(pytest, "parse_log_pvlib")],
  ["pydata/xarray", of(pytest, "parse_log_xarray")],
  ["pydicom/pydicom", of(pytest, "parse_log_pydicom")],
  ["pylint-dev/astroid", of(pytest, "parse_log_astroid")],
  ["pylint-dev/pylint", of(pytest, "parse_log_pylint")],
  ["pytest-dev/pytest", of(pytest, "parse_log_pytest")],
  ["pyvista/pyvista", of(pytest, "parse_log_pyvista")],
  [
    "scikit-learn/scikit-learn",
    of(pytest, "parse_log_scikit", { build: "python -m pip install -v --no-use-pep517 --no-build-isolation -e ." }),
  ],
  ["sphinx-doc/sphinx", of("tox --current-env -epy39 -v --", "parse_log_sphinx")],
  ["sqlfluff/sqlfluff", of(pytest, "parse_log_sqlfluff")],
  ["sympy/sympy", of("PYTHONWARNINGS='ignore::UserWarning,ignore::SyntaxWarning' bin/test -C --verbose", "parse_log_sympy")],
];

/** Early versions that have another command. */
const byVersion: readonly (readonly [string, readonly string[], string])[] = [
  ["astropy/astropy", ["0.1", "0.2", "0.3", "0.4", "1.1", "1.2", "1.3"], "pytest -rA -vv -o console_output_style=classic --tb=no"],
  ["django/django", ["1.9"], "./tests/runtests.py --verbosity 2"],
];

const repos = new Map(sweBench);
const exceptions = new Map(byVersion.flatMap(([repo, versions, command]) => versions.map((version) => [`${repo} ${version}`, command])));

/** Returns null if the tables do not have the repository. */
export function testsOf(repo: string, version: string): RepoTests | null {
  const found = repos.get(repo);
  return found ? { ...found, command: exceptions.get(`${repo} ${version}`) ?? found.command } : null;
}

/** SWE-Gym's repositories in small letters, because its rows spell one of them in two ways. */
const gym = new Map<string, RepoTests>([
  ["bokeh/bokeh", of("pytest -rA -n0", "parse_log_pytest")],
  ["conan-io/conan", of("pytest -n0 -rA", "parse_log_pytest", { before: "export PYTHONPATH=$PYTHONPATH:$PWD" })],
  ["dask/dask", of("pytest -n0 -rA  --color=no", "parse_log_pytest")],
  ["facebookresearch/hydra", of("pytest -rA --tb=long", "parse_log_pytest")],
  ["getmoto/moto", of("pytest -n0 -rA", "parse_log_pytest")],
  ["iterative/dvc", of("pytest -rA", "parse_log_pytest")],
  ["modin-project/modin", of("pytest -n0 -rA", "parse_log_pytest")],
  ["pandas-dev/pandas", of("pytest -rA --tb=long", "parse_log_pytest")],
  ["project-monai/monai", of("pytest -rA", "parse_log_pytest")],
]);

export function gymTestsOf(repo: string): RepoTests | null {
  return gym.get(repo.toLowerCase()) ?? null;
}
