/**
 * Makes recipes from `install_config` of SWE-rebench's and SWE-rebench-V2's rows. SWE-rebench's images have conda's environment
 * `testbed`, as swebench 4 makes it. V2's images start from base images, for which the set has Dockerfiles.
 */
import { z } from "zod";
import { ImageName } from "../../../base/schema/environment/image-name.ts";
import { parseTask } from "../../task-error.ts";
import { Commit, fromJsonText, Repository } from "../columns.ts";
import { quoted } from "../published-task.ts";
import type { Recipe } from "./recipe.ts";

// biome-ignore lint/suspicious/noControlCharactersInRegex: no command may have them
const control = /[\x00-\x08\x0b-\x1f\x7f]/;
const Command = z.string().refine((text) => !control.test(text), "has a control character");
const Commands = z.preprocess((value) => (typeof value === "string" ? [value] : (value ?? [])), fromJsonText(z.array(Command), "list"));
/** Text on one line. */
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

/** The packages that swebench 4.1 installs in each image of a Python repository. */
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

/** `packages` names a kind of file in the repository, or lists packages of conda, which a shell splits into words. */
function condaLines({ python, packages: kind, reqs_path, env_yml_path, no_use_env }: Told): string[] {
  const create = `conda create -q -y -n testbed python=${python}`;
  if (kind === "requirements.txt") return [create, activated, ...reqs_path.map(pipInstall)];
  if (kind !== "environment.yml") return [kind ? `${create} ${kind}` : create, activated];
  const file = firstOf(env_yml_path.length > 0 ? env_yml_path : ["environment.yml"]);
  return no_use_env
    ? [`${create} -c conda-forge`, `conda env update -q -n testbed -f ${file}`, activated]
    : [`conda env create -q -n testbed -f ${file}`, activated, `conda install -q -y python=${python}`];
}

/** Shell words for the first of the files that exists. */
function firstOf(paths: string[]): string {
  return `"$(ls -d -- ${paths.map((path) => quoted(path)).join(" ")} 2>/dev/null | head -n 1)"`;
}

/** Leaves out the repository itself and constraints, as the set does. The copy lies beside the file, so relative names in it work. */
function pipInstall(path: string): string {
  const file = quoted(path);
  const own = quoted(`${path}.alidade`);
  return `if [ -f ${file} ]; then grep -vE '^[[:space:]]*(-e \\.|#|\\.\\[test|-c|\\.[[:space:]]*$)' -- ${file} > ${own} || true; python -m pip install -r ${own}; rm -f -- ${own}; fi`;
}

/** The set's script gives its images this name: `scripts/build_base_images.py --registry swe-rebench-v2 --tag-suffix ""`. */
const secondRegistry = "swe-rebench-v2";

/** Does what the set's template does: goes on after a command that fails, and runs each command in a shell of its own. */
export function secondRebenchRecipe(value: unknown, where: string): Recipe {
  const { repo, base_commit, install_config: told } = parseTask(SecondRow, value, where);
  const lines = ["set -x", ...told.install.map((command) => `( ${command}\n) || true`)];
  return { base: [`FROM ${secondRegistry}/${told.base_image_name}`], repo, commit: base_commit, install: `${lines.join("\n")}\n` };
}
