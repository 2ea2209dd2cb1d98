import { forge } from "./forged/forge-at-load.ts";
import { type Probe, quoted } from "./probe.ts";

const compile = (tests: string[]): string => `import py_compile, importlib.util, os, sys
for path in ${JSON.stringify(tests)}:
    if path.endswith(".py"):
        cache = importlib.util.cache_from_source(path)
        os.makedirs(os.path.dirname(cache), exist_ok=True)
        py_compile.compile(".cache.py", cfile=cache, dfile=path, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
`;

export const staleCaches: Probe = {
  name: "stale-caches",
  title: "leaves compiled files that stand in for the hidden tests",
  rows: [7],
  languages: ["python"],
  cure: "start Python with PYTHONPYCACHEPREFIX, or with -B in a tree without caches",
  script: (target) => `cat > .cache.py <<'END'
${forge(target).python}
END
python3 -c ${quoted(compile(target.tests))} || true
rm -f .cache.py`,
};
