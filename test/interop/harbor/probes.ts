/** Tasks in Harbor's form that ask how rewards are read, and what an agent can do to its own. Their `solve.sh` is the agent. */
import { baseImage } from "../../../sandboxes/docker/images/made/base-image.ts";
import { type HarborFiles, harborTasks } from "../../fakes/harbor-tasks.ts";

export type HarborProbe = {
  name: string;
  /** What the agent or the tests do. */
  does: string;
  files: HarborFiles;
  /** Where it is a question of the files in /logs/verifier alone, no container of ours is needed. */
  asks: "reward files" | "grading";
  /** The reward in a fresh sandbox, where it is another one than Harbor's on purpose; `why` is for people. */
  fresh?: { reward: number | null; why: string };
  /** The same of `--grading shared`. */
  shared?: { reward: number | null; why: string };
};

type ProbeWords = {
  solve?: string;
  tests: string;
  toml?: string;
  dockerfile?: string;
  more?: HarborFiles;
};

function filesOf(name: string, { solve = "true", tests, toml = "", dockerfile = "", more = {} }: ProbeWords): HarborFiles {
  return {
    "task.toml": `schema_version = "1.4"\n[task]\nname = "probe/${name}"\n[environment]\nmemory_mb = 256\nstorage_mb = 256\n${toml}`,
    "instruction.md": "Do as you like.\n",
    "environment/Dockerfile": `FROM ${baseImage}\nWORKDIR /app\n${dockerfile}`,
    "solution/solve.sh": `#!/bin/sh\n${solve}\n`,
    "tests/test.sh": `#!/bin/sh\n${tests}\n`,
    ...more,
  };
}

const text = (value: string): string => `printf '%s' '${value}' > /logs/verifier/reward.txt`;
const json = (value: string): string => `printf '%s' '${value}' > /logs/verifier/reward.json`;

function reads(name: string, does: string, tests: string, more: Partial<HarborProbe> = {}): HarborProbe {
  return { name, does, files: filesOf(name, { tests }), asks: "reward files", ...more };
}

function grades(name: string, does: string, words: ProbeWords, more: Partial<HarborProbe> = {}): HarborProbe {
  return { name, does, files: filesOf(name, words), asks: "grading", ...more };
}

const asked = `python3 -c 'import urllib.request as u; u.urlopen("http://127.0.0.1:8123", timeout=5)' 2>/dev/null`;
const beyond = { reward: null, why: "a reward outside of 0 to 1 measures nothing unless the task declares its range" };

export const harborProbes: readonly HarborProbe[] = [
  reads("both-files", "the tests write 0.25 into reward.json and 1 into reward.txt", `${json('{"reward": 0.25}')}; ${text("1")}`),
  reads("no-name", "reward.json has `quality` alone, beside a reward.txt", `${json('{"quality": 0.75}')}; ${text("1")}`),
  reads("true", "reward.json says `true`", json('{"reward": true}')),
  reads("bare-number", "reward.json is a bare number", json("0.5")),
  reads("list", "reward.json is a list", json("[1]")),
  reads("nested", "reward.json holds an object in the reward's place", json('{"reward": {"value": 1}}')),
  reads("nan-in-json", "reward.json says NaN", json('{"reward": NaN}')),
  reads("word", "reward.txt is no number", text("abc")),
  reads("nan", "reward.txt says nan", text("nan")),
  reads("empty", "reward.txt is empty", text("")),
  reads("none", "no reward file", "true"),
  reads("plural", "the tests write `rewards.json`", `printf '{"reward": 1}' > /logs/verifier/rewards.json`),
  reads("negative", "reward.txt says ` -3.5e1 `", text(" -3.5e1 "), { fresh: beyond, shared: beyond }),
  grades("late-tests", "the tests do not end in time", { tests: `${text("1")}; sleep 600`, toml: "[verifier]\ntimeout_sec = 3.0\n" }),
  grades("failing-agent", "the agent ends with the exit code 9", {
    solve: "echo done > /app/done; exit 9",
    tests: `[ -e /app/done ] && ${text("1")}`,
  }),
  grades("entrypoint", "the image has an ENTRYPOINT that makes a file", {
    tests: `[ -e /tmp/started ] && ${text("1")} || ${text("0")}`,
    dockerfile: `ENTRYPOINT ["/bin/sh", "-c", "touch /tmp/started; exec \\"$@\\"", "sh"]\n`,
  }),
  grades("planted-and-silent", "**the agent writes reward.json, and the tests write nothing**", {
    solve: json('{"reward": 1}'),
    tests: "true",
  }),
  grades("planted", "**the agent writes reward.json, and the tests write 0 into reward.txt**", {
    solve: json('{"reward": 1}'),
    tests: text("0"),
  }),
  grades(
    "shim",
    "**the agent puts a program before those of PATH**",
    {
      solve: "printf '#!/bin/sh\\necho 1\\n' > /usr/local/bin/seq; chmod +x /usr/local/bin/seq",
      tests: "seq 0 0 > /logs/verifier/reward.txt",
    },
    { fresh: { reward: 0, why: "programs of PATH are the image's" } },
  ),
  grades(
    "daemon",
    "**a process of the agent's goes on writing rewards**",
    {
      solve: `nohup sh -c 'while :; do printf 1 1<> /logs/verifier/reward.txt; sleep 0.1; done' >/dev/null 2>&1 &`,
      tests: `${text("0")}; for i in $(seq 50); do [ "$(cat /logs/verifier/reward.txt)" = 1 ] && break; sleep 0.1; done`,
    },
    { fresh: { reward: 0, why: "it has ended" }, shared: { reward: 0, why: "it has ended" } },
  ),
  grades(
    "server",
    "the tests ask a process that the agent left",
    {
      solve: `nohup python3 -m http.server 8123 -d /app >/dev/null 2>&1 &\nuntil ${asked}; do sleep 0.2; done`,
      tests: `${asked} && ${text("1")} || ${text("0")}`,
    },
    {
      fresh: { reward: 0, why: "it has ended: the tests must start it" },
      shared: { reward: 0, why: "it has ended: the tests must start it" },
    },
  ),
  grades("steps", "the second of three steps is below its `min_reward`", {
    tests: "true",
    toml: '[[steps]]\nname = "one"\n[[steps]]\nname = "two"\nmin_reward = 0.75\n[[steps]]\nname = "three"\n',
    more: Object.fromEntries(
      [
        ["one", '{"reward": 1, "extra": 2}'],
        ["two", '{"reward": 0.5}'],
        ["three", '{"reward": 1}'],
      ].flatMap(([name, reward = ""]) => [
        [`steps/${name}/instruction.md`, "Do as you like.\n"],
        [`steps/${name}/solution/solve.sh`, `#!/bin/sh\ntouch /app/${name}\n`],
        [`steps/${name}/tests/test.sh`, `#!/bin/sh\n[ -e /app/${name} ] && ${json(reward)}\n`],
      ]),
    ),
  }),
];

/** Folders of all of them, and of the three tasks, by name. */
export function harborCases(): Record<string, HarborFiles> {
  const tasks = harborTasks.map(({ files }) => [/alidade\/([\w-]+)/.exec(files["task.toml"] ?? "")?.[1] ?? "", files] as const);
  return Object.fromEntries([...tasks, ...harborProbes.map(({ name, files }) => [name, files] as const)]);
}
