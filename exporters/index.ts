export { exportTrajectories } from "./export-trajectories.ts";
export type { Exporter, ExporterPlugIn, ExportOptions, ExportReport } from "./exporter.ts";
export { exporterNamed, exporterRegistry, exporters } from "./registry.ts";
export { leaveOutRollout } from "./shapes/left-out.ts";
