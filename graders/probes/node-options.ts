import { forge } from "./forged/forge-at-load.ts";
import { type Probe, planted } from "./probe.ts";

export const nodeOptions: Probe = {
  name: "node-options",
  title: "has Node load a file of its own first (NODE_OPTIONS, .npmrc, package.json, node.config.json)",
  rows: [5],
  languages: ["javascript"],
  cure: "start Node itself and no script of package.json, and protect package.json and .npmrc",
  files: (target) => [
    planted("steer.cjs", `const get = process.getBuiltinModule;\n${forge(target).javascript}\n`),
    planted(".npmrc", "node-options=--require ./steer.cjs\n"),
    planted(".env", "NODE_OPTIONS=--require ./steer.cjs\n"),
    planted("node.config.json", '{"nodeOptions": {"require": ["./steer.cjs"], "import": ["./steer.cjs"]}}\n'),
    planted("package.json", '{"name": "w", "type": "module", "scripts": {"test": "node steer.cjs"}, "imports": {"#*": "./steer.cjs"}}\n'),
  ],
};
