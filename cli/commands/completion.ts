/** `alidade completion <shell>`: verbs, flags and their choices for the shell's own completion. */
import { Argument, type Command } from "commander";
import { print } from "./command-line.ts";

/** What is completed: names, and what a flag takes. */
type Completed = { name: string; summary: string; flags: { long: string; about: string; takes: boolean; choices: readonly string[] }[] };

/** `whole`: the program with every verb loaded. */
export function completion(whole: () => Promise<Command>): (program: Command) => void {
  return (program) => {
    program
      .command("completion")
      .description("Prints a script that completes verbs, flags and their choices.")
      .addArgument(new Argument("<shell>", "your shell").choices(Object.keys(scripts)))
      .addHelpText(
        "after",
        '\nExamples:\n  eval "$(alidade completion bash)"                                    # in ~/.bashrc\n  eval "$(alidade completion zsh)"                                     # in ~/.zshrc, after compinit\n  alidade completion fish > ~/.config/fish/completions/alidade.fish',
      )
      .action(async (shell: keyof typeof scripts) => print(scripts[shell]((await whole()).commands.map(completed))));
  };
}

function completed(command: Command): Completed {
  const flags = command.options.flatMap(({ long, description, argChoices = [], required, optional }) =>
    long ? [{ long, about: description, takes: required || optional, choices: argChoices }] : [],
  );
  return {
    name: command.name(),
    summary: command.summary(),
    flags: [...flags, { long: "--help", about: "the options", takes: false, choices: [] }],
  };
}

const scripts = { bash, zsh, fish };

/** Where a flag takes something that is no choice, and in the place of an argument, files are completed. */
function bash(verbs: Completed[]): string {
  const cases = verbs.map(({ name, flags }) => {
    const taking = flags.filter(({ takes }) => takes);
    const byFlag = taking.map(({ long, choices }) => `        ${long}) words='${choices.join(" ")}' ;;`);
    return `    ${name})
      case "$before" in
${[...byFlag, `        *) [[ "$word" == -* ]] && words='${flags.map(({ long }) => long).join(" ")}' ;;`].join("\n")}
      esac ;;`;
  });
  return `_alidade() {
  local word="\${COMP_WORDS[COMP_CWORD]}" before="\${COMP_WORDS[COMP_CWORD-1]}" words=
  if (( COMP_CWORD == 1 )); then words='${verbs.map(({ name }) => name).join(" ")}'
  else case "\${COMP_WORDS[1]}" in
${cases.join("\n")}
  esac; fi
  if [[ -n "$words" ]]; then COMPREPLY=($(compgen -W "$words" -- "$word")); else COMPREPLY=($(compgen -f -- "$word")); fi
}
complete -o filenames -F _alidade alidade`;
}

function zsh(verbs: Completed[]): string {
  return `autoload -U +X bashcompinit && bashcompinit\n${bash(verbs)}`;
}

function fish(verbs: Completed[]): string {
  const lines = verbs.flatMap(({ name, summary, flags }) => [
    `complete -c alidade -n __fish_use_subcommand -f -a ${name} -d ${quoted(summary)}`,
    ...flags.map(({ long, about, takes, choices }) => {
      const values = choices.length > 0 ? ` -x -a ${quoted(choices.join(" "))}` : takes ? " -r" : "";
      return `complete -c alidade -n '__fish_seen_subcommand_from ${name}' -l ${long.slice(2)}${values} -d ${quoted(about)}`;
    }),
  ]);
  return lines.join("\n");
}

/** For fish: a text in single quotes, as one line. */
function quoted(text: string): string {
  return `'${text.replaceAll("\n", " ").replace(/[\\']/g, "\\$&")}'`;
}
