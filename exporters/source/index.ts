export { type DifferentPrompts, describedPrompts, GroupPrompts, promptsOf } from "./group-prompts.ts";
