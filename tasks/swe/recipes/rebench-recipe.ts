/**
 * Recipes of SWE-rebench and SWE-rebench-V2, out of the rows' `install_config`. The first one's images have conda's environment
 * `testbed`, as swebench 4 makes it; those of V2 begin with images that the set has Dockerfiles of.
 */
import { z } from "zod";
import { ImageName } from "../../../base/schema/environment/image-name.ts";
import { parseTask } from "../../task-error.ts";
import { Commit, fromJsonText, Repository } from "../columns.ts";
import { quoted } from "../published-task.ts";
import type { Recipe } from "./recipe.ts";

// biome-ignore lint/suspicious/noControlCharactersInRegex: what no command has
const control = /[\x00-\x08\x0b-\x1f\x7f]/;
const Command = z.string().refine((text) => !control.test(text), "has a control character");
const Commands = z.preprocess((value) => (typeof value === "string" ? [value] : (value ?? [])), fromJsonText(z.array(Command), "list"));
/** A word of one line. */
const Line = z.string().refine((text) => !control.test(text) && !text.includes("\n"), "has a line end or a control character");
const Paths = z.preprocess((value) => value ?? [], z.array(Line));

const Row = { repo: Repository, base_commit: Commit };

const FirstRow = z.looseObject({
  ...Row,
  install_config: z.looseObject({
    python: z
      .union([z.string(), z.number()])
      .transform(String)
      .pipe(z.string().regex(/^\d+\.\d+(?:\.\d+)?$/, "is no version of Python, such as 3.9")),
    packages: Line.nullish(),
    pip_packages: Paths,
    reqs_path: Paths,
    env_yml_path: Paths,
    no_use_env: z.boolean().nullish(),
    pre_install: Commands,
    install: Commands,
  }),
});

const SecondRow = z.looseObject({
  ...Row,
  install_config: z.looseObject({ base_image_name: ImageName, install: Commands }),
});

/** What swebench 4.1 puts into each image of a Python repository. */
const packages = "wget git build-essential libffi-dev libtiff-dev python3 python3-pip python-is-python3 jq curl locales locales-all tzdata";
const conda = "https://repo.anaconda.com/miniconda/Miniconda3-py311_23.11.0-2-Linux-x86_64.sh";

const firstBase = [
  "FROM ubuntu:22.04",
  "ENV DEBIAN_FRONTEND=noninteractive TZ=Etc/UTC",
  `RUN apt-get update && apt-get install -y ${packages} && rm -rf /var/lib/apt/lists/*`,
  `RUN wget -q ${conda} -O /tmp/conda.sh && bash /tmp/conda.sh -b -p /opt/miniconda3 && rm /tmp/conda.sh`,
  "ENV PATH=/opt/miniconda3/bin:$PATH",
  "RUN conda config --append channels conda-forge",
];

/** The lowest version that conda has. */
const lowestPython = "3.6";

export function firstRebenchRecipe(value: unknown, where: string): Recipe {
  const { repo, base_commit, install_config: told } = parseTask(FirstRow, value, where);
  const lines = [
    "set -e",
    "export LANG=C.UTF-8 LC_ALL=C.UTF-8",
    ...condaLines({ ...told, python: atLeast(told.python) }),
    ...(told.pip_packages.length > 0 ? [`python -m pip install ${told.pip_packages.map(quoted).join(" ")}`] : []),
    ...told.pre_install,
    ...told.install,
  ];
  return { base: firstBase, repo, commit: base_commit, install: `${lines.join("\n")}\n` };
}

function atLeast(python: string): string {
  const [major = 0, minor = 0] = python.split(".").map(Number);
  return major < 3 || (major === 3 && minor < 6) ? lowestPython : python;
}

type Told = z.infer<typeof FirstRow>["install_config"];

const activated = ". /opt/miniconda3/bin/activate && conda activate testbed";

/** `packages` names a kind of file in the repository, or packages of conda as a shell reads them. */
function condaLines({ python, packages: kind, reqs_path, env_yml_path, no_use_env }: Told): string[] {
  const create = `conda create -q -y -n testbed python=${python}`;
  if (kind === "requirements.txt") return [create, activated, ...reqs_path.map(pipInstall)];
  if (kind !== "environment.yml") return [kind ? `${create} ${kind}` : create, activated];
  const file = firstOf(env_yml_path.length > 0 ? env_yml_path : ["environment.yml"]);
  return no_use_env
    ? [`${create} -c conda-forge`, `conda env update -q -n testbed -f ${file}`, activated]
    : [`conda env create -q -n testbed -f ${file}`, activated, `conda install -q -y python=${python}`];
}

/** The first of the files that is there. */
function firstOf(paths: string[]): string {
  return `"$(ls -d -- ${paths.map((path) => quoted(path)).join(" ")} 2>/dev/null | head -n 1)"`;
}

/** Not the repository itself, and no constraints: the set leaves those lines out. It stands beside the file, for the files that it names. */
function pipInstall(path: string): string {
  const file = quoted(path);
  const own = quoted(`${path}.alidade`);
  return `if [ -f ${file} ]; then grep -vE '^[[:space:]]*(-e \\.|#|\\.\\[test|-c|\\.[[:space:]]*$)' -- ${file} > ${own} || true; python -m pip install -r ${own}; rm -f -- ${own}; fi`;
}

/** Under this name the set's script builds its images: `scripts/build_base_images.py --registry swe-rebench-v2 --tag-suffix ""`. */
const secondRegistry = "swe-rebench-v2";

/** A command that fails ends nothing, and none of them sees what another one exported: so does the set's template. */
export function secondRebenchRecipe(value: unknown, where: string): Recipe {
  const { repo, base_commit, install_config: told } = parseTask(SecondRow, value, where);
  const lines = ["set -x", ...told.install.map((command) => `( ${command}\n) || true`)];
  return { base: [`FROM ${secondRegistry}/${told.base_image_name}`], repo, commit: base_commit, install: `${lines.join("\n")}\n` };
}
