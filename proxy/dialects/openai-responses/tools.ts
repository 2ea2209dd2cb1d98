/** Tools and tool choice of a Responses request. */
import { z } from "zod";
import type { Tool, ToolChoice } from "../../../base/schema/message.ts";
import { checked, invalid, isObject } from "../edge.ts";
import { refuseClientRun } from "../left-out/client-run.ts";
import { customTool } from "../openai/custom-tool.ts";
import { functionTool } from "../openai/function-tool.ts";
import { builtinTool, builtinTools, builtinTypeOfChoice } from "./builtin-tools.ts";

type NamespacedTool = { namespace: string; name: string };

const WireTool = z.looseObject({ type: z.string() });
const CustomTool = z.looseObject({ name: z.string().min(1), description: z.string().nullish() });
const Namespace = z.looseObject({ name: z.string().min(1), tools: z.array(z.unknown()) });
const Named = z.looseObject({ type: z.string(), name: z.string().optional(), namespace: z.string().nullish() });
const AllowedTools = z.looseObject({ mode: z.enum(["auto", "required"]), tools: z.array(z.unknown()) });

/**
 * The tools of a request, wherever in it they stand. Models know no namespaces, so a namespaced tool is shown as
 * `namespace__name`: the same in every request, also in one without tools (a compaction), for the history says it too.
 */
export class ToolList {
  readonly tools: Tool[] = [];
  /** Types of tools that run at the vendor, so the model here does not get them. */
  readonly hosted: string[] = [];
  /** Where a flattened tool came from, by the name that the model sees. */
  readonly namespaced = new Map<string, NamespacedTool>();
  /** Types of built-in tools, by the name that the model sees. */
  readonly builtin = new Map<string, string>();
  readonly #plain = new Set<string>();

  add(values: unknown, at: string): void {
    const list = checked(z.array(z.unknown()).nullish(), values, at) ?? [];
    // Known before any name is made, so that a made name never takes a plain tool's.
    for (const value of list)
      if (isObject(value) && typeof value.name === "string" && value.type !== "namespace") this.#plain.add(value.name);
    for (const [index, value] of list.entries()) this.#addOne(value, `${at}[${index}]`, null);
  }

  /** The model's name of a tool. */
  nameOf(name: string, namespace: string | null | undefined): string {
    if (!namespace) return name;
    const known = [...this.namespaced].find(([, tool]) => tool.namespace === namespace && tool.name === name);
    return known?.[0] ?? `${namespace}__${name}`;
  }

  /** The model's name of a built-in tool, whether it is offered now or not. */
  builtinName(type: string): string {
    return [...this.builtin].find(([, known]) => known === type)?.[0] ?? type;
  }

  #addOne(value: unknown, at: string, namespace: string | null): void {
    const tool = checked(WireTool, value, at);
    if (tool.type === "function") this.#push(functionTool(tool, at), namespace);
    else if (tool.type === "custom") {
      const custom = checked(CustomTool, tool, at);
      this.#push(customTool(custom.name, custom.description ?? undefined, tool.format), namespace);
    } else if (tool.type === "namespace" && namespace === null) {
      const { name, tools } = checked(Namespace, tool, at);
      for (const [index, inner] of tools.entries()) this.#addOne(inner, `${at}.tools[${index}]`, name);
    } else if (builtinTools.has(tool.type) && namespace === null) this.#pushBuiltin(tool, at);
    else {
      refuseClientRun(tool.type, `${at}.type`);
      this.hosted.push(tool.type);
    }
  }

  #push(tool: Tool, namespace: string | null): void {
    if (namespace === null) {
      this.tools.push(tool);
      return;
    }
    const name = this.#free(`${namespace}__${tool.name}`);
    this.namespaced.set(name, { namespace, name: tool.name });
    this.tools.push({ ...tool, name });
  }

  #pushBuiltin(tool: z.output<typeof WireTool>, at: string): void {
    if ([...this.builtin.values()].includes(tool.type)) return;
    const name = this.#free(tool.type);
    this.builtin.set(name, tool.type);
    this.tools.push(builtinTool(tool.type, name, tool, at));
  }

  /** A name that no other tool has. */
  #free(wanted: string): string {
    let name = wanted;
    for (let count = 2; this.#plain.has(name) || this.namespaced.has(name) || this.builtin.has(name); count++) name = `${wanted}__${count}`;
    return name;
  }

  /** `allowed_tools` says which of the tools may be called now: the others are not shown, for nothing else would stop the model. */
  choose(value: unknown): { tool_choice: ToolChoice | null; tools: Tool[] } {
    if (value === null || value === undefined) return { tool_choice: null, tools: this.tools };
    if (value === "auto" || value === "none" || value === "required") return { tool_choice: value, tools: this.tools };
    if (!isObject(value))
      throw invalid("tool_choice", `expected "auto", "none", "required" or an object, received ${JSON.stringify(value)}`);
    if (value.type === "allowed_tools") {
      const allowed = checked(AllowedTools, value, "tool_choice");
      const names = allowed.tools.map((tool, index) => this.#named(tool, `tool_choice.tools[${index}]`));
      return { tool_choice: allowed.mode, tools: this.tools.filter((tool) => names.includes(tool.name)) };
    }
    const name = this.#named(value, "tool_choice");
    if (name === null) throw invalid("tool_choice", `tools of type "${String(value.type)}" are not supported`);
    return { tool_choice: { name }, tools: this.tools };
  }

  /** Null for a hosted tool, which the model does not get. */
  #named(value: unknown, at: string): string | null {
    const choice = checked(Named, value, at);
    const builtin = builtinTypeOfChoice(choice.type);
    if (choice.type !== "function" && choice.type !== "custom" && builtin === null) return null;
    const name = builtin === null ? this.nameOf(choice.name ?? "", choice.namespace) : this.builtinName(builtin);
    if (!this.tools.some((tool) => tool.name === name)) throw invalid(at, `no tool is named "${name}"`);
    return name;
  }
}
