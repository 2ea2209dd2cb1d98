export { exportTrajectories } from "./export-trajectories.ts";
export { type Exporter, type ExporterPlugIn, type ExportOptions, type ExportReport, emptyReport } from "./exporter.ts";
export { exporterNamed, exporterRegistry, exporters } from "./registry.ts";
export { leaveOutRollout } from "./shapes/left-out.ts";
