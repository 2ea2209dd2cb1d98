/** The repositories in JavaScript and TypeScript. */
import type { MultilingualRepo } from "./multilingual-repo.ts";

export const javascriptRepos: readonly MultilingualRepo[] = [
  [
    "babel/babel",
    "parse_log_jest",
    "make build",
    [
      ["14532", "yarn jest babel-generator --verbose"],
      ["13928", 'yarn jest babel-parser -t "arrow" --verbose'],
      ["15649", "yarn jest packages/babel-traverse/test/scope.js --verbose"],
      ["15445", 'yarn jest packages/babel-generator/test/index.js -t "generation " --verbose'],
      ["16130", "yarn jest babel-helpers --verbose"],
    ],
  ],
  [
    "vuejs/core",
    "parse_log_vitest",
    "",
    [
      [
        "11899",
        "pnpm run test packages/compiler-sfc/__tests__/compileStyle.spec.ts --no-watch --reporter=verbose",
        "pnpm run build compiler-sfc",
      ],
      ["11870", "pnpm run test packages/runtime-core/__tests__/helpers/renderList.spec.ts --no-watch --reporter=verbose"],
      ["11739", 'pnpm run test packages/runtime-core/__tests__/hydration.spec.ts --no-watch --reporter=verbose -t "mismatch handling"'],
      ["11915", 'pnpm run test packages/compiler-core/__tests__/parse.spec.ts --no-watch --reporter=verbose -t "Element"'],
      ["11589", "pnpm run test packages/runtime-core/__tests__/apiWatch.spec.ts --no-watch --reporter=verbose"],
    ],
  ],
  [
    "facebook/docusaurus",
    "parse_log_jest",
    "",
    [
      ["10309", "yarn test packages/docusaurus-plugin-content-docs/src/client/__tests__/docsClientUtils.test.ts --verbose"],
      ["10130", "yarn test packages/docusaurus/src/server/__tests__/brokenLinks.test.ts --verbose"],
      ["9897", "yarn test packages/docusaurus-utils/src/__tests__/markdownUtils.test.ts --verbose"],
      ["9183", "yarn test packages/docusaurus-theme-classic/src/__tests__/options.test.ts --verbose"],
      ["8927", "yarn test packages/docusaurus-utils/src/__tests__/markdownLinks.test.ts --verbose"],
    ],
  ],
  [
    "immutable-js/immutable-js",
    "parse_log_immutable_js",
    "npm run build",
    [
      ["2006", "npx jest __tests__/Range.ts --verbose"],
      [
        "2005",
        'npx jest __tests__/OrderedMap.ts __tests__/OrderedSet.ts --silent --json | jq -r \'.testResults[].assertionResults[] | "[" + (.status | ascii_upcase) + "] " + ((.ancestorTitles | join(" > ")) + (if .ancestorTitles | length > 0 then " > " else "" end) + .title)\'',
      ],
    ],
  ],
  [
    "mrdoob/three.js",
    "parse_log_tap",
    "",
    [
      ["27395", "npx qunit test/unit/src/math/Sphere.tests.js"],
      ["26589", "npx qunit test/unit/src/objects/Line.tests.js test/unit/src/objects/Mesh.tests.js test/unit/src/objects/Points.tests.js"],
      ["25687", 'npx qunit test/unit/src/core/Object3D.tests.js -f "/json|clone|copy/i"'],
    ],
  ],
  [
    "preactjs/preact",
    "parse_log_karma",
    "",
    [
      ["4152", 'COVERAGE=false BABEL_NO_MODULES=true npx karma start karma.conf.js --single-run --grep="test/browser/components.test.js"'],
      ["4316", 'COVERAGE=false BABEL_NO_MODULES=true npx karma start karma.conf.js --single-run --grep="test/browser/events.test.js"'],
      ["4245", 'COVERAGE=false BABEL_NO_MODULES=true npx karma start karma.conf.js --single-run --grep="hooks/test/browser/useId.test.js"'],
      [
        "4182",
        'COVERAGE=false BABEL_NO_MODULES=true npx karma start karma.conf.js --single-run --grep="hooks/test/browser/errorBoundary.test.js"',
      ],
      ["4436", 'COVERAGE=false BABEL_NO_MODULES=true npx karma start karma.conf.js --single-run --grep="test/browser/refs.test.js"'],
      [
        "3763",
        'COVERAGE=false BABEL_NO_MODULES=true npx karma start karma.conf.js --single-run --grep="test/browser/lifecycles/componentDidMount.test.js"',
      ],
      [
        "3739",
        'COVERAGE=false BABEL_NO_MODULES=true npx karma start karma.conf.js --single-run --grep="hooks/test/browser/useState.test.js"',
      ],
      [
        "3689",
        'COVERAGE=false BABEL_NO_MODULES=true npx karma start karma.conf.js --single-run --grep="hooks/test/browser/errorBoundary.test.js"',
      ],
      [
        "3567",
        'COVERAGE=false BABEL_NO_MODULES=true npx karma start karma.conf.js --single-run --grep="hooks/test/browser/useEffect.test.js"',
      ],
      [
        "3562",
        'COVERAGE=false BABEL_NO_MODULES=true npx karma start karma.conf.js --single-run --grep="compat/test/browser/render.test.js"',
      ],
      ["3454", 'COVERAGE=false BABEL_NO_MODULES=true npx karma start karma.conf.js --single-run --grep="test/browser/svg.test.js"'],
      [
        "3345",
        'COVERAGE=false BABEL_NO_MODULES=true npx karma start karma.conf.js --single-run --grep="hooks/test/browser/useEffect.test.js"',
      ],
      ["3062", 'COVERAGE=false BABEL_NO_MODULES=true npx karma start karma.conf.js --single-run --grep="test/browser/render.test.js"'],
      ["3010", 'COVERAGE=false BABEL_NO_MODULES=true npx karma start karma.conf.js --single-run --grep="test/browser/render.test.js"'],
      ["2927", 'COVERAGE=false BABEL_NO_MODULES=true npx karma start karma.conf.js --single-run --grep="test/browser/render.test.js"'],
      ["2896", 'COVERAGE=false BABEL_NO_MODULES=true npx karma start karma.conf.js --single-run --grep="compat/test/browser/memo.test.js"'],
      ["2757", 'COVERAGE=false BABEL_NO_MODULES=true npx karma start karma.conf.js --single-run --grep="test/browser/render.test.js"'],
    ],
  ],
  [
    "axios/axios",
    "parse_log_tap",
    "",
    [
      ["5892", "npx mocha test/unit/adapters/http.js -R tap -g 'compression'"],
      ["5316", "npx mocha test/unit/adapters/http.js -R tap -g 'FormData'", "npm install"],
      ["4738", "timeout 10s npx mocha -R tap test/unit/adapters/http.js -g 'timeout'"],
      ["4731", "npx mocha -R tap test/unit/adapters/http.js -g 'body length'"],
      ["6539", "npx mocha -R tap test/unit/regression/SNYK-JS-AXIOS-7361793.js"],
      ["5085", "npx mocha -R tap test/unit/regression/bugs.js"],
    ],
  ],
];
