/** What an operator lets tasks have beyond their own files: variables of this host, and the public network. */
import { InvalidArgumentError, Option } from "commander";
import { NetworkAccess } from "../../../base/schema/network.ts";
import { parseRewardRule, type RewardRule } from "../../../graders/harbor/index.ts";
import type { LoadOptions } from "../../../tasks/index.ts";
import { imageSources } from "../../../tasks/sets/index.ts";
import { terminal } from "../terminal.ts";

export function taskEnvOption(): Option {
  return new Option("--task-env <name>", "variable of this host that tasks may read; several times for several").argParser(
    (name: string, names: string[] = []) => [...names, name],
  );
}

export type ImageSourceFlags = Pick<LoadOptions, "images"> & { repositories?: string; harborReward?: RewardRule };

export function imagesOption(): Option {
  const words =
    "where images come from: pull, or build, by the recipe in a row (SWE-rebench, SWE-rebench-V2) or the Dockerfile beside a Harbor task; default: pull";
  return new Option("--images <from>", words).choices(imageSources);
}

export function repositoriesOption(): Option {
  return new Option("--repositories <folder>", "bare clones, owner/name.git, that images are built from; others come from github.com");
}

export function harborRewardOption(): Option {
  const words =
    "which number of a Harbor verifier is the reward where several are there and the task does not say so: mean, min, a name, or names with weights (quality=2,style=1)";
  return new Option("--harbor-reward <rule>", words).argParser((text) => {
    try {
      return parseRewardRule(text);
    } catch {
      throw new InvalidArgumentError("give mean, min, a name, or names with weights, such as quality=2,style=1");
    }
  });
}

export function keepProcessesOption(): Option {
  const words =
    "the agent's processes live while the tests run, in its own sandbox, where it can change its grade (tier T0): for tasks that leave a server running";
  return new Option("--keep-processes", words);
}

export function verifierNetworkOption(): Option {
  const words =
    "what the tests of a task of Harbor or Terminal-Bench reach where it does not say so, beside the agent's network: public, or names of hosts (deb.debian.org,pypi.org,*.pythonhosted.org)";
  return new Option("--verifier-network <hosts>", words).argParser((text) => {
    const asked = text === "public" || text === "none" ? text : { allow: text.split(",").map((name) => name.trim()) };
    const { data } = NetworkAccess.safeParse(asked);
    if (data !== undefined) return data;
    throw new InvalidArgumentError("give public, none, or names of hosts such as pypi.org,*.pythonhosted.org");
  });
}

/** A variable that is not set stays unknown to tasks. */
export function grantsOf(config: {
  task_env: readonly string[];
  allow_public_network?: boolean;
  images?: LoadOptions["images"];
  repositories?: string | null;
  harbor_reward?: RewardRule | null;
  verifier_network?: NetworkAccess | null;
}): Pick<LoadOptions, "env" | "allowPublic" | "images" | "repositories" | "harborReward" | "verifierNetwork"> {
  const { env } = terminal();
  const given = config.task_env.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]] as const]));
  const { images = "pull", repositories = null, harbor_reward: harborReward = null, verifier_network: verifierNetwork = null } = config;
  const allowPublic = config.allow_public_network === true;
  return { env: Object.fromEntries(given), allowPublic, images, repositories, harborReward, verifierNetwork };
}
