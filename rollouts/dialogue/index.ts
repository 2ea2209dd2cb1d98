export { runDialogue } from "./run-dialogue.ts";
