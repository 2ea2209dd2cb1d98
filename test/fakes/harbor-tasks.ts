/** Three tasks in Harbor's form, with the rewards that Harbor 0.24.0 itself gave its oracle and its agent that does nothing. */
import { baseImage } from "../../sandboxes/docker/images/made/base-image.ts";
import { folderOf } from "./kept-work.ts";

export type HarborFiles = Record<string, string>;

const greet: HarborFiles = {
  "task.toml": `schema_version = "1.4"
[task]
name = "alidade/greet-file"
[agent]
timeout_sec = 60.0
[verifier]
timeout_sec = 30.0
[environment]
cpus = 1
memory_mb = 256
storage_mb = 256
`,
  "instruction.md": "Create the file `/app/greeting.txt`. It must contain exactly one line: `hello alidade`, ended by a newline.\n",
  "environment/Dockerfile": `FROM ${baseImage}\nWORKDIR /app\n`,
  "solution/solve.sh": `#!/bin/bash
printf "hello alidade\\n" > /app/greeting.txt
`,
  "tests/test.sh": `#!/bin/bash
if [ "$(cat /app/greeting.txt 2>/dev/null; echo x)" = "$(printf 'hello alidade\\nx')" ]; then r=1; else r=0; fi
echo "$r" > /logs/verifier/reward.txt
`,
};

const slug: HarborFiles = {
  "task.toml": `[task]
name = "alidade/fix-slug"
[verifier]
timeout_sec = 60.0
env = { SLUG_CASES = "4" }
[environment]
memory_mb = 256
storage_mb = 256
workdir = "/app"
env = { TASK_FLAVOUR = "\${ALIDADE_FLAVOUR:-plain}" }
`,
  "instruction.md": "Repair `slug(text)` in `/app/slug.py`: small letters, one `-` for each run of other characters, none at the ends.\n",
  "environment/Dockerfile": `FROM ${baseImage}\nCOPY src/ /app/\nWORKDIR /\n`,
  "environment/src/slug.py": 'def slug(text):\n    return text.replace(" ", "-")\n',
  "solution/solve.sh": `#!/bin/bash
cat > slug.py <<'PY'
import re
def slug(text):
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
PY
`,
  "tests/grade.py": `import json, os, subprocess
CASES = [("a b", "a-b"), ("Hello World", "hello-world"), ("a  --  b!", "a-b"), ("  x  ", "x")]
passed = 0
for given, want in CASES[: int(os.environ["SLUG_CASES"])]:
    code = "import sys; sys.path.insert(0, '/app'); from slug import slug; print(slug(sys.argv[1]))"
    got = subprocess.run(["python3", "-I", "-c", code, given], capture_output=True, text=True, timeout=10)
    passed += got.stdout == want + "\\n"
with open("/logs/verifier/reward.json", "w") as f:
    json.dump({"reward": passed / len(CASES), "passed": passed, "perfect": int(passed == len(CASES))}, f)
`,
  // Its exit code says nothing.
  "tests/test.sh": "#!/bin/bash\npython3 /tests/grade.py\nexit 3\n",
};

const words: HarborFiles = {
  "task.toml": `artifacts = ["/srv/out"]
[task]
name = "alidade/count-words"
[agent]
timeout_sec = 60.0
user = "worker"
[verifier]
timeout_sec = 60.0
environment_mode = "separate"
[verifier.environment]
memory_mb = 256
storage_mb = 256
[environment]
memory_mb = 256
storage_mb = 256
`,
  "instruction.md": "Count the words in `/data/text.txt` and write the number and a newline to `/srv/out/count.txt`.\n",
  "environment/Dockerfile": `FROM ${baseImage}
RUN useradd -m worker && mkdir -p /data /srv/out && printf 'one two  three\\n\\tfour\\nfive' > /data/text.txt && chown -R worker /srv
WORKDIR /srv
`,
  "solution/solve.sh": '#!/bin/bash\nwc -w < /data/text.txt | tr -d " " > /srv/out/count.txt\n',
  "tests/Dockerfile": `FROM ${baseImage}\nCOPY test.sh /tests/test.sh\n`,
  // In a container of its own: /data is not there.
  "tests/test.sh": `#!/bin/bash
test -e /data/text.txt && echo "the agent's files are here" && exit 1
case "$(cat /srv/out/count.txt 2>/dev/null)" in 5) r=1.0 ;; [0-9]*) r=0.25 ;; *) r=0 ;; esac
echo "$r" > /logs/verifier/reward.txt
`,
};

/** `oracle`, `nop`: Harbor's rewards. */
export const harborTasks: { files: HarborFiles; oracle: Record<string, number>; nop: Record<string, number> }[] = [
  { files: greet, oracle: { reward: 1 }, nop: { reward: 0 } },
  { files: slug, oracle: { reward: 1, passed: 4, perfect: 1 }, nop: { reward: 0.25, passed: 1, perfect: 0 } },
  { files: words, oracle: { reward: 1 }, nop: { reward: 0 } },
];

/** A folder of task folders, named by their keys. */
export function harborFolder(tasks: Record<string, HarborFiles>): Promise<string> {
  const files = Object.entries(tasks).flatMap(([name, task]) =>
    Object.entries(task).map(([path, text]) => [`${name}/${path}`, text] as const),
  );
  return folderOf(files.map(([path, text]) => ({ path, content: Buffer.from(text), mode: 0o644 })));
}
