/**
 * Draws from a seed what a session does in each turn. It reads and edits files, runs tests, keeps a process in the background and
 * calls tools side by side. If the harness has sub-agents, it starts some. Half of the repairs are wrong, so rewards differ.
 */
import { SeededRandom } from "../../practice/model/random.ts";

export type Step =
  | { do: "shell"; command: string }
  | { do: "read"; path: string }
  | { do: "write"; path: string; content: string }
  /** `old` is one whole line of the file. */
  | { do: "edit"; path: string; old: string; new: string }
  /** `start` leaves a process running, and `look` reads its output so far. */
  | { do: "start"; command: string }
  | { do: "look" }
  | { do: "agent"; prompt: string; background: boolean }
  /** The last turn of a sub-agent that must call a tool to end. */
  | { do: "report"; text: string };

export type Turns = readonly (readonly Step[])[];

export type SessionScript = {
  instruction: string;
  files: Record<string, string>;
  turns: Turns;
  /** Turns of sub-agents, by the first words of their prompt. */
  agents: Readonly<Record<string, Turns>>;
  /** The factor that the grader expects of each unit. */
  factors: readonly number[];
};

export type ScriptOptions = { name: string; seed: number; agents: boolean; turns: { least: number; most: number } };

export function drawSession({ name, seed, agents, turns: { least, most } }: ScriptOptions): SessionScript {
  const random = new SeededRandom(seed);
  const below = (count: number): number => Math.floor(random.uniform() * count);
  const wanted = least + below(most - least + 1);
  const factors = Array.from({ length: 2 + below(3) }, () => 2 + below(90));
  const files = projectFiles(factors);
  const repairs = factors.map((factor, index): Step => {
    const given = random.uniform() < 0.5 ? factor : factor + 1 + below(5);
    return { do: "edit", path: unit(index), old: wrongLine, new: `  return value * ${given};` };
  });
  const reads = factors.map((_, index): Step => ({ do: "read", path: unit(index) }));
  const job: Step = { do: "start", command: `node job.mjs ${20 + below(200)}` };
  const parts = agents ? Array.from({ length: 1 + below(2) }, (_, part) => `Part ${part + 1} of ${name}`) : [];
  const background = random.uniform() < 0.5;
  const fixed: (readonly Step[])[] = [
    // Some harnesses refuse to edit a file that was not read before.
    ...(random.uniform() < 0.5 ? [reads] : reads.map((read) => [read])),
    [job],
    ...(random.uniform() < 0.5 ? repairs.map((repair) => [repair]) : [repairs]),
    ...(parts.length > 0 ? [parts.map((part): Step => ({ do: "agent", prompt: `${part}. Say how it went.`, background }))] : []),
    [{ do: "look" }],
    [{ do: "shell", command: "node --test" }],
    [{ do: "shell", command: "kill $(cat job.pid) && echo ended" }],
  ];
  const spare = Math.max(0, wanted - 1 - fixed.length);
  const turns = [...fixed];
  for (let more = 0; more < spare; more++) turns.splice(below(turns.length + 1), 0, drawExtra(random, more));
  return {
    instruction: `Repair the units of ${name}: each src/unit-*.mjs multiplies by the factor that README.md says. Keep job.mjs running while you work.`,
    ...{ files, turns, factors },
    agents: Object.fromEntries(parts.map((part) => [part, drawPart(random, part)])),
  };
}

const wrongLine = "  return value;";
const unit = (index: number): string => `src/unit-${index}.mjs`;

function projectFiles(factors: readonly number[]): Record<string, string> {
  const units = factors.map((_, index) => [unit(index), `export function unit${index}(value) {\n${wrongLine}\n}\n`]);
  const tests = factors.map((factor, index) => [
    `test/unit-${index}.test.mjs`,
    `import assert from "node:assert/strict";\nimport { test } from "node:test";\nimport { unit${index} } from "../${unit(index)}";\n\ntest("unit ${index} multiplies by its factor", () => assert.equal(unit${index}(3), ${3 * factor}));\n`,
  ]);
  return {
    "README.md": `# Units\n\n${factors.map((factor, index) => `* unit ${index}: ${factor}`).join("\n")}\n`,
    "package.json": `{ "name": "units", "type": "module", "private": true }\n`,
    "job.mjs": jobSource,
    ...Object.fromEntries([...units, ...tests]),
  };
}

/** Writes fifty lines, one each `every` milliseconds. Ends after a minute if no turn ends it earlier. */
const jobSource = `import { appendFileSync } from "node:fs";
const every = Number(process.argv[2]);
appendFileSync("job.log", "ready\\n");
console.log("ready");
let count = 0;
const beat = setInterval(() => {
  if (count === 50) return;
  appendFileSync("job.log", \`beat \${++count} at \${new Date().toISOString()}\\n\`);
  console.log(\`beat \${count}\`);
}, every);
setTimeout(() => clearInterval(beat), 60_000);
`;

/** Draws steps to run between the repairs. Some of them fail, and some print different output each time. */
function drawExtra(random: SeededRandom, number: number): readonly Step[] {
  const note: Step = { do: "write", path: `notes-${number}.md`, content: `Note ${number}: ${Math.floor(random.uniform() * 1e9)}\n` };
  const shell = (command: string): Step => ({ do: "shell", command });
  const kinds: (readonly Step[])[] = [
    [shell("ls -la . src && date")],
    [{ do: "read", path: "README.md" }, { do: "read", path: "job.mjs" }, shell("wc -l src/*.mjs")],
    [note],
    [note, shell("pwd; git --version")],
    [shell("git init -q . ; git add -A ; git -c user.name=a -c user.email=a@b commit -qm work ; git log --stat | head -n 20")],
    [shell("mktemp -d; echo pid $$; hostname")],
    [{ do: "read", path: "missing.md" }],
    [shell("node --test test/unit-0.test.mjs; echo ended with $?")],
    [shell("node -e 'console.log(crypto.randomUUID(), Math.random(), process.uptime())'")],
    [shell("find . -type f -not -path './.git/*' | sort | head -n 40"), shell("grep -rn return src")],
    [shell("ps -o comm= -p $$ ; free -m | head -n 2")],
    [shell("false"), shell("sleep 0.3; echo slept")],
    [{ do: "look" }],
  ];
  return kinds[Math.floor(random.uniform() * kinds.length)] ?? [note];
}

function drawPart(random: SeededRandom, part: string): Turns {
  const own: Step = { do: "write", path: `${part.toLowerCase().replaceAll(" ", "-")}.md`, content: `${part}: ${random.uniform()}\n` };
  const looks: Step[] = [
    { do: "read", path: "README.md" },
    { do: "shell", command: "ls -l src && date +%s%N" },
  ];
  const turns = random.uniform() < 0.5 ? [looks, [own]] : [...looks.map((look) => [look]), [own]];
  return [...turns, [{ do: "report", text: `${part} went well.` }]];
}
