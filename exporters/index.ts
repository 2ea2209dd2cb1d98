export { exportTrajectories } from "./export-trajectories.ts";
export type { Exporter, ExporterPlugIn, ExportOptions, ExportReport } from "./exporter.ts";
export { exporterNamed, exporterRegistry, exporters } from "./registry.ts";
export { callsOfRow, inputOf, outputOf, toolsOf } from "./rows/row-calls.ts";
export { toChatMessages, toChatTool } from "./shapes/chat-messages.ts";
export { leaveOutRollout } from "./shapes/left-out.ts";
export { describedPrompts, GroupPrompts } from "./source/group-prompts.ts";
