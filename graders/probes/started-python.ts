import { forge } from "./forged/forge-at-load.ts";
import { type Probe, quoted } from "./probe.ts";

export const startedPython: Probe = {
  name: "started-python",
  title: "plants what Python runs when it starts: sitecustomize, usercustomize, .pth files",
  rows: [5],
  languages: ["python"],
  cure: "run Python with -I or -S, or with a PYTHONPATH that leads to no folder of the work",
  script: (target) => `cat > sitecustomize.py <<'END'
${forge(target).python}
END
cp sitecustomize.py usercustomize.py
printf 'import os; exec(open(%s).read())\\n' ${quoted(JSON.stringify(`${target.workdir}/sitecustomize.py`))} > steer.pth
for d in $(python3 -I -c 'import site, sys; print(*site.getsitepackages(), site.getusersitepackages(), *[p for p in sys.path if p])' 2>/dev/null); do
  mkdir -p "$d" 2>/dev/null && [ -w "$d" ] && cp sitecustomize.py usercustomize.py steer.pth "$d/"
done
true`,
};
