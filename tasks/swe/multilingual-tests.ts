/**
 * SWE-bench Multilingual. Its published rows do not say how they are tested, so this table does, as swebench 4.1's. It has a row
 * for each instance. A version is the number of the instance's pull request.
 */

type Tests = readonly [
  version: string,
  /** The whole test command: lines of bash. */
  command: string,
  /** Commands that build again with the work in place. Default: those of the repository. */
  build?: string,
];
type Repo = readonly [repo: string, parser: string, build: string, tests: readonly Tests[]];

const repos: readonly Repo[] = [
  [
    "redis/redis",
    "parse_log_redis",
    "make distclean\nmake",
    [
      ["13115", "TERM=dumb ./runtest --durable --single unit/scripting"],
      ["12472", 'TERM=dumb ./runtest --durable --single unit/acl --only "/.*ACL GETUSER.*"'],
      ["12272", 'TERM=dumb ./runtest --durable --single unit/type/string --only "/.*(GETRANGE|SETRANGE).*"'],
      ["11734", "TERM=dumb ./runtest --durable --single unit/bitops"],
      ["10764", 'TERM=dumb ./runtest --durable --single unit/type/zset --only "BZMPOP"'],
      ["10095", 'TERM=dumb ./runtest --durable --single unit/type/list --only "/.*(LPOP|RPOP)"'],
      ["9733", "TERM=dumb ./runtest --durable --single unit/introspection-2"],
      ["10068", 'TERM=dumb ./runtest --durable --single unit/type/stream --only "/*XTRIM*"'],
      ["11631", 'TERM=dumb ./runtest --durable --single unit/geo --only "/.*GEOSEARCH .*"'],
      ["11510", 'TERM=dumb ./runtest --durable --single unit/introspection --only "/.*MONITOR.*"'],
      ["11279", "TERM=dumb ./runtest --durable --single unit/acl"],
      ["13338", "TERM=dumb ./runtest --durable --single unit/type/stream-cgroups"],
    ],
  ],
  [
    "jqlang/jq",
    "parse_log_jq",
    "git submodule update --init\nautoreconf -fi\n./configure --with-oniguruma=builtin\nmake clean\ntouch src/parser.y src/lexer.l\nmake -j$(nproc)",
    [
      ["2839", "make check"],
      ["2650", "make check"],
      ["2235", "make check"],
      ["2658", "make check"],
      ["2750", "make check"],
      ["2681", "make check"],
      ["2919", "make check"],
      ["2598", "make check"],
      ["2728", "make check"],
    ],
  ],
  [
    "nlohmann/json",
    "parse_log_doctest",
    "mkdir -p build\ncd build\ncmake ..\nmake test-udt_cpp11\ncd ..",
    [["4237", "./build/tests/test-udt_cpp11 -s -r=xml"]],
  ],
  [
    "micropython/micropython",
    "parse_log_micropython_test",
    "source ./tools/ci.sh\nci_unix_build_helper VARIANT=standard\ngcc -shared -o tests/ports/unix/ffi_lib.so tests/ports/unix/ffi_lib.c",
    [
      [
        "15898",
        "cd tests\nMICROPY_CPYTHON3=python3 MICROPY_MICROPYTHON=../ports/unix/build-standard/micropython ./run-tests.py -i string_format",
      ],
      ["13569", "cd tests\nMICROPY_CPYTHON3=python3 MICROPY_MICROPYTHON=../ports/unix/build-standard/micropython ./run-tests.py -i try"],
      [
        "13039",
        "cd tests\nMICROPY_CPYTHON3=python3 MICROPY_MICROPYTHON=../ports/unix/build-standard/micropython ./run-tests.py -i slice",
        "source ./tools/ci.sh\nci_unix_build_helper VARIANT=standard\ngcc -shared -o tests/unix/ffi_lib.so tests/unix/ffi_lib.c",
      ],
      [
        "12158",
        "cd tests\nMICROPY_CPYTHON3=python3 MICROPY_MICROPYTHON=../ports/unix/build-standard/micropython ./run-tests.py -d thread",
        "source ./tools/ci.sh\nci_unix_build_helper VARIANT=standard\ngcc -shared -o tests/unix/ffi_lib.so tests/unix/ffi_lib.c",
      ],
      [
        "10095",
        "cd tests\nMICROPY_CPYTHON3=python3 MICROPY_MICROPYTHON=../ports/unix/build-standard/micropython ./run-tests.py -i basics/fun",
        "source ./tools/ci.sh\nci_unix_build_helper VARIANT=standard",
      ],
    ],
  ],
  [
    "valkey-io/valkey",
    "parse_log_redis",
    "make distclean\nmake",
    [
      ["928", 'TERM=dumb ./runtest --durable --single unit/cluster/replica-migration --only "/.*NOREPLICAS.*"'],
      ["790", "TERM=dumb ./runtest --durable --single unit/cluster/cluster-shards"],
      ["1499", "TERM=dumb ./runtest --durable --single unit/introspection-2"],
      ["1842", 'TERM=dumb ./runtest --durable --single unit/acl --only "/.*ACL LOAD.*"'],
    ],
  ],
  [
    "fmtlib/fmt",
    "parse_log_googletest",
    "mkdir -p build\ncmake -B build -S .\ncmake --build build --parallel $(nproc) --target format-test",
    [
      [
        "3863",
        "ctest --test-dir build -V -R ranges-test",
        "mkdir -p build\ncmake -B build -S .\ncmake --build build --parallel $(nproc) --target ranges-test",
      ],
      [
        "3158",
        "ctest --test-dir build -V -R ranges-test",
        "mkdir -p build\ncmake -B build -S .\ncmake --build build --parallel $(nproc) --target ranges-test",
      ],
      [
        "2457",
        "ctest --test-dir build -V -R ranges-test",
        "mkdir -p build\ncmake -B build -S .\ncmake --build build --parallel $(nproc) --target ranges-test",
      ],
      ["3901", "ctest --test-dir build -V -R format-test"],
      ["3750", "ctest --test-dir build -V -R format-test"],
      ["3248", "ctest --test-dir build -V -R format-test"],
      ["2317", "ctest --test-dir build -V -R format-test"],
      ["2310", "ctest --test-dir build -V -R format-test"],
      [
        "3272",
        "ctest --test-dir build -V -R xchar-test",
        "mkdir -p build\ncmake -B build -S .\ncmake --build build --parallel $(nproc) --target xchar-test",
      ],
      [
        "3729",
        "ctest --test-dir build -V -R std-test",
        "mkdir -p build\ncmake -B build -S .\ncmake --build build --parallel $(nproc) --target std-test",
      ],
      [
        "1683",
        "ctest --test-dir build -V -R printf-test",
        "mkdir -p build\ncmake -B build -S .\ncmake --build build --parallel $(nproc) --target printf-test",
      ],
    ],
  ],
  [
    "caddyserver/caddy",
    "parse_log_gotest",
    "",
    [
      ["6411", 'go test -v . -run "TestReplacerNew*"'],
      ["6345", "go test -v ./caddytest/integration"],
      ["6115", "go test -v ./modules/caddyhttp/reverseproxy"],
      ["6051", "go test -v ./caddyconfig/caddyfile"],
      ["5404", "go test -v ./caddyconfig/caddyfile"],
      ["6370", "go test -v ./cmd"],
      ["6350", 'go test -v ./caddytest/integration -run "TestCaddyfileAdapt*"'],
      ["6288", 'go test -v ./caddytest/integration -run "TestCaddyfileAdapt*"'],
      ["5995", 'go test -v ./caddytest/integration -run "^TestUriReplace"'],
      ["4943", "go test -v ./modules/logging"],
      ["5626", 'go test -v ./caddyconfig/httpcaddyfile -run "Test.*Import"'],
      ["5761", 'go test -v ./caddyconfig/caddyfile -run "TestLexer.*"'],
      ["5870", 'go test -v . -run "TestUnsyncedConfigAccess"'],
      ["4774", 'go test -v ./caddytest/integration -run "TestCaddyfileAdapt*"'],
    ],
  ],
  [
    "hashicorp/terraform",
    "parse_log_gotest",
    "",
    [
      ["35611", 'go test -v ./internal/terraform -run "^TestContext2Apply_provisioner"'],
      ["35543", 'go test -v ./internal/terraform -run "^TestContext2Plan_import"'],
      ["34900", 'go test -v ./internal/terraform -run "(^TestContext2Apply|^TestContext2Plan).*[Ss]ensitive"'],
      ["34580", 'go test -v ./internal/command -run "^TestFmt"'],
      ["34814", "go test -v ./internal/builtin/provisioners/remote-exec"],
    ],
  ],
  [
    "prometheus/prometheus",
    "parse_log_gotest",
    "",
    [
      ["14861", 'go test -v ./promql -run "^TestEngine"'],
      ["13845", 'go test -v ./promql ./model/labels -run "^(TestRangeQuery|TestLabels)"'],
      ["12874", 'go test -v ./tsdb -run "^TestHead"'],
      ["11859", 'go test -v ./tsdb -run "^TestSnapshot"'],
      ["10720", 'go test -v ./promql -run "^TestEvaluations"'],
      ["10633", 'go test -v ./discovery/puppetdb -run "TestPuppetDBRefreshWithParameters"'],
      ["9248", 'go test -v ./promql -run "^TestEvaluations"'],
      ["15142", 'go test -v ./tsdb -run "^TestHead"'],
    ],
  ],
  [
    "gohugoio/hugo",
    "parse_log_gotest",
    "",
    [
      ["12768", "go test -v ./markup/goldmark/blockquotes/..."],
      ["12579", 'go test -v ./resources/page -run "^TestGroupBy"'],
      ["12562", 'go test -v ./hugolib/... -run "^TestGetPage[^/]"'],
      ["12448", 'go test -v ./hugolib/... -run "^TestRebuild"'],
      ["12343", 'go test -v ./resources/page/... -run "^Test.*Permalink"'],
      ["12204", 'go test -v ./tpl/tplimpl -run "^TestEmbedded"'],
      ["12171", 'go test -v ./hugolib -run "^Test.*Pages"'],
    ],
  ],
  [
    "gin-gonic/gin",
    "parse_log_gotest",
    "",
    [
      ["4003", 'go test . -v -run "TestMethodNotAllowedNoRoute"'],
      ["3820", 'go test -v ./binding -run "^TestMapping"'],
      ["3741", 'go test -v . -run "^TestColor"'],
      ["2755", 'go test -v . -run "^TestTree"'],
      ["3227", 'go test -v . -run "^TestRedirect"'],
      ["2121", 'go test -v ./... -run "^Test.*Reader"'],
      ["1957", 'go test -v . -run "^TestContext.*Bind"'],
      ["1805", 'go test -v . -run "^Test.*Router"'],
    ],
  ],
  [
    "google/gson",
    "parse_log_maven",
    "",
    [
      [
        "2158",
        "mvnd test -B -T 1C -pl gson -Dtest=com.google.gson.functional.PrimitiveTest#testByteSerialization\nmvnd test -B -T 1C -pl gson -Dtest=com.google.gson.functional.PrimitiveTest#testShortSerialization\nmvnd test -B -T 1C -pl gson -Dtest=com.google.gson.functional.PrimitiveTest#testIntSerialization\nmvnd test -B -T 1C -pl gson -Dtest=com.google.gson.functional.PrimitiveTest#testLongSerialization\nmvnd test -B -T 1C -pl gson -Dtest=com.google.gson.functional.PrimitiveTest#testFloatSerialization\nmvnd test -B -T 1C -pl gson -Dtest=com.google.gson.functional.PrimitiveTest#testDoubleSerialization\nmvnd test -B -T 1C -pl gson -Dtest=com.google.gson.functional.PrimitiveTest#testPrimitiveIntegerAutoboxedSerialization\nmvnd test -B -T 1C -pl gson -Dtest=com.google.gson.functional.PrimitiveTest#testPrimitiveIntegerAutoboxedInASingleElementArraySerialization\nmvnd test -B -T 1C -pl gson -Dtest=com.google.gson.functional.PrimitiveTest#testReallyLongValuesSerialization\nmvnd test -B -T 1C -pl gson -Dtest=com.google.gson.functional.PrimitiveTest#testPrimitiveLongAutoboxedSerialization",
      ],
      [
        "2024",
        "mvnd test -B -T 1C -pl gson -Dtest=com.google.gson.functional.FieldNamingTest#testUpperCaseWithUnderscores\nmvnd test -B -T 1C -pl gson -Dtest=com.google.gson.functional.NamingPolicyTest#testGsonWithUpperCaseUnderscorePolicySerialization\nmvnd test -B -T 1C -pl gson -Dtest=com.google.gson.functional.NamingPolicyTest#testGsonWithUpperCaseUnderscorePolicyDeserialiation",
      ],
      [
        "2479",
        "mvnd test -B -T 1C -pl gson -Dtest=com.google.gson.GsonBuilderTest#testRegisterTypeAdapterForObjectAndJsonElements\nmvnd test -B -T 1C -pl gson -Dtest=com.google.gson.GsonBuilderTest#testRegisterTypeHierarchyAdapterJsonElements\nmvnd test -B -T 1C -pl gson -Dtest=com.google.gson.GsonBuilderTest#testModificationAfterCreate",
      ],
      [
        "2134",
        "mvnd test -B -T 1C -pl gson -Dtest=com.google.gson.internal.bind.util.ISO8601UtilsTest#testDateParseInvalidDay\nmvnd test -B -T 1C -pl gson -Dtest=com.google.gson.internal.bind.util.ISO8601UtilsTest#testDateParseInvalidMonth\nmvnd test -B -T 1C -pl gson -Dtest=com.google.gson.internal.bind.util.ISO8601UtilsTest#testDateParseWithDefaultTimezone",
      ],
      [
        "2061",
        "mvnd test -B -T 1C -pl gson -Dtest=com.google.gson.stream.JsonReaderTest#testHasNextEndOfDocument\nmvnd test -B -T 1C -pl gson -Dtest=com.google.gson.internal.bind.JsonTreeReaderTest#testHasNext_endOfDocument\nmvnd test -B -T 1C -pl gson -Dtest=com.google.gson.stream.JsonReaderTest#testReadEmptyObject\nmvnd test -B -T 1C -pl gson -Dtest=com.google.gson.stream.JsonReaderTest#testReadEmptyArray\nmvnd test -B -T 1C -pl gson -Dtest=com.google.gson.internal.bind.JsonTreeReaderTest#testSkipValue_emptyJsonObject\nmvnd test -B -T 1C -pl gson -Dtest=com.google.gson.internal.bind.JsonTreeReaderTest#testSkipValue_filledJsonObject",
      ],
      [
        "2311",
        "mvnd test -B -T 1C -pl gson -Dtest=com.google.gson.JsonPrimitiveTest#testEqualsIntegerAndBigInteger\nmvnd test -B -T 1C -pl gson -Dtest=com.google.gson.JsonPrimitiveTest#testLongEqualsBigInteger\nmvnd test -B -T 1C -pl gson -Dtest=com.google.gson.JsonPrimitiveTest#testEqualsAcrossTypes",
      ],
      [
        "1100",
        "mvnd test -B -T 1C -pl gson -Dtest=com.google.gson.DefaultDateTypeAdapterTest#testNullValue\nmvnd test -B -T 1C -pl gson -Dtest=com.google.gson.DefaultDateTypeAdapterTest#testDatePattern\nmvnd test -B -T 1C -pl gson -Dtest=com.google.gson.DefaultDateTypeAdapterTest#testInvalidDatePattern",
      ],
      [
        "1093",
        "mvnd test -B -T 1C -pl gson -Dtest=com.google.gson.stream.JsonWriterTest#testNonFiniteDoublesWhenLenient\nmvnd test -B -T 1C -pl gson -Dtest=com.google.gson.stream.JsonWriterTest#testNonFiniteBoxedDoublesWhenLenient\nmvnd test -B -T 1C -pl gson -Dtest=com.google.gson.stream.JsonWriterTest#testNonFiniteDoubles\nmvnd test -B -T 1C -pl gson -Dtest=com.google.gson.stream.JsonWriterTest#testNonFiniteBoxedDoubles\nmvnd test -B -T 1C -pl gson -Dtest=com.google.gson.stream.JsonWriterTest#testDoubles",
      ],
      [
        "1014",
        "mvnd test -B -T 1C -pl gson -Dtest=com.google.gson.internal.bind.JsonTreeReaderTest#testSkipValue_emptyJsonObject\nmvnd test -B -T 1C -pl gson -Dtest=com.google.gson.internal.bind.JsonTreeReaderTest#testSkipValue_filledJsonObject",
      ],
    ],
  ],
  [
    "apache/druid",
    "parse_log_maven",
    "",
    [
      [
        "15402",
        "mvnd test -B -T 1C -pl processing -Dtest=org.apache.druid.query.groupby.GroupByQueryQueryToolChestTest#testCacheStrategy\nmvnd test -B -T 1C -pl processing -Dtest=org.apache.druid.query.groupby.GroupByQueryQueryToolChestTest#testResultLevelCacheKeyWithSubTotalsSpec\nmvnd test -B -T 1C -pl processing -Dtest=org.apache.druid.query.groupby.GroupByQueryQueryToolChestTest#testMultiColumnCacheStrategy",
      ],
      [
        "14092",
        "mvnd test -B -T 1C -pl server -Dtest=org.apache.druid.discovery.DruidLeaderClientTest#test503ResponseFromServerAndCacheRefresh\nmvnd test -B -T 1C -pl server -Dtest=org.apache.druid.discovery.DruidLeaderClientTest#testServerFailureAndRedirect",
      ],
      [
        "14136",
        "mvnd test -B -T 1C -pl processing -Dtest=org.apache.druid.timeline.VersionedIntervalTimelineTest#testOverlapSecondContainsFirstZeroLengthInterval\nmvnd test -B -T 1C -pl processing -Dtest=org.apache.druid.timeline.VersionedIntervalTimelineTest#testOverlapSecondContainsFirstZeroLengthInterval2\nmvnd test -B -T 1C -pl processing -Dtest=org.apache.druid.timeline.VersionedIntervalTimelineTest#testOverlapSecondContainsFirstZeroLengthInterval3\nmvnd test -B -T 1C -pl processing -Dtest=org.apache.druid.timeline.VersionedIntervalTimelineTest#testOverlapSecondContainsFirstZeroLengthInterval4\nmvnd test -B -T 1C -pl processing -Dtest=org.apache.druid.timeline.VersionedIntervalTimelineTest#testOverlapFirstContainsSecond\nmvnd test -B -T 1C -pl processing -Dtest=org.apache.druid.timeline.VersionedIntervalTimelineTest#testOverlapSecondContainsFirst",
      ],
      [
        "13704",
        "mvnd test -B -pl processing -Dtest=org.apache.druid.query.aggregation.post.ArithmeticPostAggregatorTest#testPow\nmvnd test -B -pl processing -Dtest=org.apache.druid.query.aggregation.post.ArithmeticPostAggregatorTest#testDiv\nmvnd test -B -pl processing -Dtest=org.apache.druid.query.aggregation.post.ArithmeticPostAggregatorTest#testQuotient",
      ],
      [
        "16875",
        "mvnd test -B -pl server -Dtest=org.apache.druid.server.metrics.WorkerTaskCountStatsMonitorTest#testMonitorWithPeon\nmvnd test -B -pl server -Dtest=org.apache.druid.server.metrics.WorkerTaskCountStatsMonitorTest#testMonitorWithNulls\nmvnd test -B -pl server -Dtest=org.apache.druid.server.metrics.WorkerTaskCountStatsMonitorTest#testMonitorIndexer",
      ],
    ],
  ],
  [
    "javaparser/javaparser",
    "parse_log_maven",
    "./mvnw clean install -B -pl javaparser-symbol-solver-testing -DskipTests -am",
    [
      [
        "4561",
        "./mvnw test -B -pl javaparser-symbol-solver-testing -Dtest=Issue4560Test\n./mvnw test -B -pl javaparser-symbol-solver-testing -Dtest=JavaSymbolSolverTest",
      ],
      [
        "4538",
        "./mvnw test -B -pl javaparser-core-testing -Dtest=NodeTest\n./mvnw test -B -pl javaparser-core-testing -Dtest=NodePositionTest",
        "./mvnw clean install -B -pl javaparser-core-testing -DskipTests -am",
      ],
    ],
  ],
  [
    "projectlombok/lombok",
    "parse_log_ant",
    "ant test.compile",
    [
      ["3602", "ant test.instance"],
      ["3312", "ant test.instance"],
      ["3697", "ant test.instance"],
      ["3326", "ant test.instance"],
      ["3674", "ant test.instance"],
      ["3594", "ant test.instance"],
      ["3422", "ant test.instance"],
      ["3215", "ant test.instance"],
      ["3486", "ant test.instance"],
      ["3042", "ant test.instance"],
      ["3052", "ant test.instance"],
      ["2792", "ant test.instance"],
      ["3571", "ant test.instance"],
      ["3479", "ant test.instance"],
      ["3371", "ant test.instance"],
      ["3350", "ant test.instance"],
      ["3009", "ant test.instance"],
    ],
  ],
  [
    "apache/lucene",
    "parse_log_gradle_custom",
    "",
    [
      ["13494", "./gradlew test --tests org.apache.lucene.facet.TestStringValueFacetCounts"],
      ["13704", "./gradlew test --tests org.apache.lucene.search.TestLatLonDocValuesQueries"],
      [
        "13301",
        "./gradlew test --tests TestXYPoint.testEqualsAndHashCode -Dtests.seed=3ABEFE4D876DD310 -Dtests.nightly=true -Dtests.locale=es-419 -Dtests.timezone=Asia/Ulaanbaatar -Dtests.asserts=true -Dtests.file.encoding=UTF-8",
      ],
      ["12626", "./gradlew test --tests org.apache.lucene.index.TestIndexWriter"],
      ["12212", "./gradlew test --tests org.apache.lucene.facet.TestDrillSideways"],
      ["13170", "./gradlew test --tests org.apache.lucene.analysis.opennlp.TestOpenNLPSentenceBreakIterator"],
      ["12196", "./gradlew test --tests org.apache.lucene.queryparser.classic.TestMultiFieldQueryParser"],
      ["12022", "./gradlew test --tests org.apache.lucene.document.TestLatLonShape"],
      ["11760", "./gradlew test --tests org.apache.lucene.queries.intervals.TestIntervalBuilder"],
    ],
  ],
  [
    "reactivex/rxjava",
    "parse_log_gradle_custom",
    "",
    [["7597", "./gradlew test --tests io.reactivex.rxjava3.internal.operators.observable.ObservableSwitchTest"]],
  ],
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
  [
    "phpoffice/phpspreadsheet",
    "parse_log_phpunit",
    "",
    [
      ["4313", "./vendor/bin/phpunit --testdox --colors=never tests/PhpSpreadsheetTests/Reader/Ods/FormulaTranslatorTest.php"],
      ["4214", "./vendor/bin/phpunit --testdox --colors=never tests/PhpSpreadsheetTests/Calculation/Functions/MathTrig/RoundDownTest.php"],
      ["4186", "./vendor/bin/phpunit --testdox --colors=never tests/PhpSpreadsheetTests/Writer/Xlsx/FunctionPrefixTest.php"],
      ["4114", "./vendor/bin/phpunit --testdox --colors=never tests/PhpSpreadsheetTests/Worksheet/Issue4112Test.php"],
      ["3940", "./vendor/bin/phpunit --testdox --colors=never tests/PhpSpreadsheetTests/Worksheet/WorksheetTest.php"],
      ["3903", "./vendor/bin/phpunit --testdox --colors=never tests/PhpSpreadsheetTests/Shared/StringHelperTest.php"],
      ["3570", "./vendor/bin/phpunit --testdox --colors=never tests/PhpSpreadsheetTests/Calculation/Functions/LookupRef/VLookupTest.php"],
      ["3463", "./vendor/bin/phpunit --testdox --colors=never tests/PhpSpreadsheetTests/Writer/Xlsx/FunctionPrefixTest.php"],
      ["3469", "./vendor/bin/phpunit --testdox --colors=never tests/PhpSpreadsheetTests/Style/StyleTest.php"],
      ["3659", "./vendor/bin/phpunit --testdox --colors=never tests/PhpSpreadsheetTests/Worksheet/Table/Issue3635Test.php"],
    ],
  ],
  [
    "laravel/framework",
    "parse_log_phpunit",
    "",
    [
      ["53914", "vendor/bin/phpunit --testdox --colors=never tests/Integration/Database/DatabaseConnectionsTest.php"],
      ["53206", "vendor/bin/phpunit --testdox --colors=never tests/Support/SupportJsTest.php"],
      ["52866", "vendor/bin/phpunit --testdox --colors=never tests/Container/ContextualAttributeBindingTest.php"],
      ["52684", "vendor/bin/phpunit --testdox --colors=never tests/Support/SupportStrTest.php"],
      ["52680", "vendor/bin/phpunit --testdox --colors=never tests/Database/DatabaseEloquentInverseRelationTest.php"],
      ["52451", "vendor/bin/phpunit --testdox --colors=never tests/Validation/ValidationValidatorTest.php --filter 'custom'"],
      ["53949", "vendor/bin/phpunit --testdox --colors=never tests/Support/OnceTest.php"],
      ["51890", "vendor/bin/phpunit --testdox --colors=never tests/Validation/ValidationValidatorTest.php --filter 'attribute'"],
      ["51195", "vendor/bin/phpunit --testdox --colors=never tests/View/Blade/BladeVerbatimTest.php"],
      ["48636", "vendor/bin/phpunit --testdox --colors=never tests/Database/DatabaseEloquentModelTest.php"],
      ["48573", "vendor/bin/phpunit --testdox --colors=never tests/Cache/CacheArrayStoreTest.php"],
      ["46234", "vendor/bin/phpunit --testdox --colors=never tests/Routing/RoutingUrlGeneratorTest.php"],
      ["53696", "vendor/bin/phpunit --testdox --colors=never tests/Database/DatabaseSchemaBlueprintTest.php"],
    ],
  ],
  [
    "php-cs-fixer/php-cs-fixer",
    "parse_log_phpunit",
    "",
    [
      ["8367", "vendor/bin/phpunit --testdox --colors=never tests/Fixer/Import/FullyQualifiedStrictTypesFixerTest.php"],
      ["8331", "vendor/bin/phpunit --testdox --colors=never tests/Fixer/LanguageConstruct/NullableTypeDeclarationFixerTest.php"],
      ["8075", "vendor/bin/phpunit --testdox --colors=never tests/Fixer/PhpUnit/PhpUnitAttributesFixerTest.php"],
      ["8064", "vendor/bin/phpunit --testdox --colors=never tests/Fixer/StringNotation/SimpleToComplexStringVariableFixerTest.php"],
      ["7998", "vendor/bin/phpunit --testdox --colors=never tests/Fixer/Casing/ConstantCaseFixerTest.php"],
      ["7875", "vendor/bin/phpunit --testdox --colors=never tests/Fixer/Whitespace/StatementIndentationFixerTest.php"],
      ["7635", "vendor/bin/phpunit --testdox --colors=never tests/Fixer/Import/FullyQualifiedStrictTypesFixerTest.php"],
      ["7523", "vendor/bin/phpunit --testdox --colors=never tests/Fixer/Operator/BinaryOperatorSpacesFixerTest.php"],
      ["8256", "vendor/bin/phpunit --testdox --colors=never tests/Fixer/PhpTag/BlankLineAfterOpeningTagFixerTest.php"],
      ["7663", "vendor/bin/phpunit --testdox --colors=never tests/Fixer/Whitespace/StatementIndentationFixerTest.php"],
    ],
  ],
  [
    "briannesbitt/carbon",
    "parse_log_phpunit",
    "",
    [
      ["3103", "vendor/bin/phpunit --testdox --colors=never tests/CarbonImmutable/SettersTest.php"],
      ["3098", "vendor/bin/phpunit --testdox --colors=never tests/CarbonInterval/ConstructTest.php"],
      ["3073", "vendor/bin/phpunit --testdox --colors=never tests/CarbonInterval/TotalTest.php"],
      ["3041", "vendor/bin/phpunit --testdox --colors=never tests/CarbonPeriod/CreateTest.php"],
      ["3005", "vendor/bin/phpunit --testdox --colors=never tests/CarbonInterval/ConstructTest.php"],
      ["2981", "vendor/bin/phpunit --testdox --colors=never tests/CarbonInterval/TotalTest.php"],
      ["2813", "vendor/bin/phpunit --testdox --colors=never tests/Factory/FactoryTest.php", "composer update\ncomposer install"],
      ["2752", "vendor/bin/phpunit --testdox --colors=never tests/CarbonImmutable/IsTest.php"],
      ["2665", "vendor/bin/phpunit --testdox --colors=never tests/Carbon/RoundTest.php"],
      ["2762", "vendor/bin/phpunit --testdox --colors=never tests/CarbonInterval/RoundingTest.php"],
    ],
  ],
  [
    "jekyll/jekyll",
    "parse_log_jekyll",
    "",
    [
      ["9141", 'bundle exec ruby -I test test/test_site.rb -v -n "/static files/"'],
      [
        "8761",
        "bundle exec cucumber --publish-quiet --format progress --no-color features/post_data.feature:6 features/post_data.feature:30",
      ],
      ["8047", 'bundle exec ruby -I test test/test_filters.rb -v -n "/where_exp filter/"'],
      ["8167", 'bundle exec ruby -I test test/test_utils.rb -v -n "/Utils.slugify/"'],
      [
        "8771",
        "bundle exec cucumber --publish-quiet --format progress --no-color features/incremental_rebuild.feature:27 features/incremental_rebuild.feature:70",
      ],
    ],
  ],
  [
    "fluent/fluentd",
    "parse_log_ruby_unit",
    "",
    [
      ["4598", "bundle exec ruby test/plugin_helper/test_http_server_helper.rb -v -n '/mount/'"],
      ["4311", "bundle exec ruby test/config/test_system_config.rb -v -n '/rotate_age/'"],
      ["4655", "bundle exec ruby test/plugin/test_in_http.rb -v -n '/test_add/'"],
      ["4030", "bundle exec ruby test/plugin/out_forward/test_ack_handler.rb -v"],
      ["3917", "bundle exec ruby test/test_config.rb -v"],
      ["3640", "bundle exec ruby test/plugin_helper/test_retry_state.rb -v -n '/exponential backoff/'"],
      ["3641", "bundle exec ruby test/test_supervisor.rb -v"],
      ["3616", "bundle exec ruby test/plugin/test_in_http.rb -v -n '/test_application/'"],
      ["3631", "bundle exec ruby test/test_event_router.rb -v -n '/handle_emits_error/'"],
      ["3466", "bundle exec ruby test/plugin/test_in_tail.rb -v -n '/test_should_replace_target_info/'"],
      ["3328", "bundle exec ruby test/plugin/test_in_tail.rb -v -n '/test_ENOENT_error_after_setup_watcher/'"],
      ["3608", "bundle exec ruby test/plugin/test_output_as_buffered_retries.rb -v -n '/retry_max_times/'"],
    ],
  ],
  [
    "fastlane/fastlane",
    "parse_log_rspec_transformed_json",
    "",
    [
      [
        "21857",
        "FASTLANE_SKIP_UPDATE_CHECK=1 bundle exec rspec ./fastlane/spec/lane_manager_base_spec.rb --no-color --format json | tail -n +2 | jq -r '.examples[] | \"\\(.description) - \\(.id) - \\(.status)\"'",
      ],
      [
        "20958",
        "FASTLANE_SKIP_UPDATE_CHECK=1 bundle exec rspec ./fastlane/spec/actions_specs/import_from_git_spec.rb --no-color --format json | tail -n +2 | jq -r '.examples[] | \"\\(.description) - \\(.id) - \\(.status)\"'",
      ],
      [
        "20642",
        "FASTLANE_SKIP_UPDATE_CHECK=1 bundle exec rspec ./frameit/spec/device_spec.rb --no-color --format json | tail -n +2 | jq -r '.examples[] | \"\\(.description) - \\(.id) - \\(.status)\"'",
      ],
      [
        "19765",
        "FASTLANE_SKIP_UPDATE_CHECK=1 bundle exec rspec ./fastlane/spec/actions_specs/download_dsyms_spec.rb --no-color --format json | tail -n +2 | jq -r '.examples[] | \"\\(.description) - \\(.id) - \\(.status)\"'",
      ],
      [
        "20975",
        "FASTLANE_SKIP_UPDATE_CHECK=1 bundle exec rspec ./match/spec/storage/s3_storage_spec.rb --no-color --format json | tail -n +2 | jq -r '.examples[] | \"\\(.description) - \\(.id) - \\(.status)\"'",
      ],
      [
        "19304",
        "FASTLANE_SKIP_UPDATE_CHECK=1 bundle exec rspec ./fastlane/spec/actions_specs/zip_spec.rb --no-color --format json | tail -n +2 | jq -r '.examples[] | \"\\(.description) - \\(.id) - \\(.status)\"'",
      ],
      [
        "19207",
        "FASTLANE_SKIP_UPDATE_CHECK=1 bundle exec rspec ./fastlane/spec/actions_specs/zip_spec.rb --no-color --format json | tail -n +2 | jq -r '.examples[] | \"\\(.description) - \\(.id) - \\(.status)\"'",
      ],
    ],
  ],
  [
    "jordansissel/fpm",
    "parse_log_rspec_transformed_json",
    "",
    [
      [
        "1850",
        "bundle exec rspec spec/fpm/package/empty_spec.rb --no-color --format json | sed -n '/^{/,$p' | jq -r '.examples[] | \"\\(.description) - \\(.status)\"'",
      ],
      [
        "1829",
        "bundle exec rspec spec/fpm/package/deb_spec.rb --no-color --format json | sed -n '/^{/,$p' | jq -r '.examples[] | \"\\(.description) - \\(.status)\"'",
      ],
    ],
  ],
  [
    "faker-ruby/faker",
    "parse_log_ruby_unit",
    "",
    [
      ["2970", "bundle exec ruby test/faker/default/test_faker_internet.rb -v -n '/email/'"],
      ["2705", "bundle exec ruby test/faker/default/test_faker_internet.rb -v -n '/password/'"],
    ],
  ],
  [
    "rubocop/rubocop",
    "parse_log_rspec_transformed_json",
    "",
    [
      [
        "13705",
        'bundle exec rspec spec/rubocop/cop/lint/out_of_range_regexp_ref_spec.rb --no-color --format json | sed -n \'/^{/,$p\' | \\\n  jq -r \'.examples | group_by(.description) | .[] |\n    if any(select(.status == "failed")) then\n      (.[0] | "\\(.description) - failed")\n    else\n      (.[0] | "\\(.description) - \\(.status)")\n    end\'',
      ],
      [
        "13687",
        'bundle exec rspec spec/rubocop/cop/lint/safe_navigation_chain_spec.rb --no-color --format json | sed -n \'/^{/,$p\' | \\\n  jq -r \'.examples | group_by(.description) | .[] |\n    if any(select(.status == "failed")) then\n      (.[0] | "\\(.description) - failed")\n    else\n      (.[0] | "\\(.description) - \\(.status)")\n    end\'',
      ],
      [
        "13680",
        'bundle exec rspec spec/rubocop/cop/style/redundant_line_continuation_spec.rb --no-color --format json | sed -n \'/^{/,$p\' | \\\n  jq -r \'.examples | group_by(.description) | .[] |\n    if any(select(.status == "failed")) then\n      (.[0] | "\\(.description) - failed")\n    else\n      (.[0] | "\\(.description) - \\(.status)")\n    end\'',
      ],
      [
        "13668",
        'bundle exec rspec spec/rubocop/cop/style/sole_nested_conditional_spec.rb --no-color --format json | sed -n \'/^{/,$p\' | \\\n  jq -r \'.examples | group_by(.description) | .[] |\n    if any(select(.status == "failed")) then\n      (.[0] | "\\(.description) - failed")\n    else\n      (.[0] | "\\(.description) - \\(.status)")\n    end\'',
      ],
      [
        "13627",
        'bundle exec rspec spec/rubocop/cop/style/multiple_comparison_spec.rb --no-color --format json | sed -n \'/^{/,$p\' | \\\n  jq -r \'.examples | group_by(.description) | .[] |\n    if any(select(.status == "failed")) then\n      (.[0] | "\\(.description) - failed")\n    else\n      (.[0] | "\\(.description) - \\(.status)")\n    end\'',
      ],
      [
        "13653",
        'bundle exec rspec spec/rubocop/cop/style/access_modifier_declarations_spec.rb --no-color --format json | sed -n \'/^{/,$p\' | \\\n  jq -r \'.examples | group_by(.description) | .[] |\n    if any(select(.status == "failed")) then\n      (.[0] | "\\(.description) - failed")\n    else\n      (.[0] | "\\(.description) - \\(.status)")\n    end\'',
      ],
      [
        "13579",
        'bundle exec rspec spec/rubocop/cop/layout/line_continuation_spacing_spec.rb --no-color --format json | sed -n \'/^{/,$p\' | \\\n  jq -r \'.examples | group_by(.description) | .[] |\n    if any(select(.status == "failed")) then\n      (.[0] | "\\(.description) - failed")\n    else\n      (.[0] | "\\(.description) - \\(.status)")\n    end\'',
      ],
      [
        "13560",
        'bundle exec rspec spec/rubocop/cop/style/file_null_spec.rb --no-color --format json | sed -n \'/^{/,$p\' | \\\n  jq -r \'.examples | group_by(.description) | .[] |\n    if any(select(.status == "failed")) then\n      (.[0] | "\\(.description) - failed")\n    else\n      (.[0] | "\\(.description) - \\(.status)")\n    end\'',
      ],
      [
        "13503",
        'bundle exec rspec spec/rubocop/cop/style/dig_chain_spec.rb --no-color --format json | sed -n \'/^{/,$p\' | \\\n  jq -r \'.examples | group_by(.description) | .[] |\n    if any(select(.status == "failed")) then\n      (.[0] | "\\(.description) - failed")\n    else\n      (.[0] | "\\(.description) - \\(.status)")\n    end\'',
      ],
      [
        "13479",
        'bundle exec rspec spec/rubocop/cop/layout/leading_comment_space_spec.rb --no-color --format json | sed -n \'/^{/,$p\' | \\\n  jq -r \'.examples | group_by(.description) | .[] |\n    if any(select(.status == "failed")) then\n      (.[0] | "\\(.description) - failed")\n    else\n      (.[0] | "\\(.description) - \\(.status)")\n    end\'',
      ],
      [
        "13431",
        'bundle exec rspec spec/rubocop/cop/layout/empty_lines_around_method_body_spec.rb --no-color --format json | sed -n \'/^{/,$p\' | \\\n  jq -r \'.examples | group_by(.description) | .[] |\n    if any(select(.status == "failed")) then\n      (.[0] | "\\(.description) - failed")\n    else\n      (.[0] | "\\(.description) - \\(.status)")\n    end\'',
      ],
      [
        "13424",
        'bundle exec rspec spec/rubocop/cop/style/safe_navigation_spec.rb --no-color --format json | sed -n \'/^{/,$p\' | \\\n  jq -r \'.examples | group_by(.description) | .[] |\n    if any(select(.status == "failed")) then\n      (.[0] | "\\(.description) - failed")\n    else\n      (.[0] | "\\(.description) - \\(.status)")\n    end\'',
      ],
      [
        "13393",
        'bundle exec rspec spec/rubocop/cop/style/guard_clause_spec.rb --no-color --format json | sed -n \'/^{/,$p\' | \\\n  jq -r \'.examples | group_by(.description) | .[] |\n    if any(select(.status == "failed")) then\n      (.[0] | "\\(.description) - failed")\n    else\n      (.[0] | "\\(.description) - \\(.status)")\n    end\'',
      ],
      [
        "13396",
        'bundle exec rspec spec/rubocop/cop/style/redundant_parentheses_spec.rb --no-color --format json | sed -n \'/^{/,$p\' | \\\n  jq -r \'.examples | group_by(.description) | .[] |\n    if any(select(.status == "failed")) then\n      (.[0] | "\\(.description) - failed")\n    else\n      (.[0] | "\\(.description) - \\(.status)")\n    end\'',
      ],
      [
        "13375",
        'bundle exec rspec spec/rubocop/cli_spec.rb --no-color --format json | sed -n \'/^{/,$p\' | \\\n  jq -r \'.examples | group_by(.description) | .[] |\n    if any(select(.status == "failed")) then\n      (.[0] | "\\(.description) - failed")\n    else\n      (.[0] | "\\(.description) - \\(.status)")\n    end\'',
      ],
      [
        "13362",
        'bundle exec rspec spec/rubocop/cop/style/redundant_freeze_spec.rb --no-color --format json | sed -n \'/^{/,$p\' | \\\n  jq -r \'.examples | group_by(.description) | .[] |\n    if any(select(.status == "failed")) then\n      (.[0] | "\\(.description) - failed")\n    else\n      (.[0] | "\\(.description) - \\(.status)")\n    end\'',
      ],
    ],
  ],
  [
    "burntsushi/ripgrep",
    "parse_log_cargo",
    "",
    [
      ["2576", "RUSTFLAGS=-Awarnings cargo test --package ripgrep --test integration -- regression"],
      ["2209", "RUSTFLAGS=-Awarnings cargo test --package ripgrep --test integration -- regression::r2208 --exact"],
    ],
  ],
  [
    "sharkdp/bat",
    "parse_log_cargo",
    "",
    [
      ["3108", "RUSTFLAGS=-Awarnings cargo test --package bat --test integration_tests pag"],
      ["2835", "RUSTFLAGS=-Awarnings cargo test --package bat --test integration_tests header"],
      ["2650", "RUSTFLAGS=-Awarnings cargo test --package bat --test integration_tests map_syntax"],
      ["2393", "RUSTFLAGS=-Awarnings cargo test --package bat --test integration_tests cache_"],
      ["2201", "RUSTFLAGS=-Awarnings cargo test --package bat --test integration_tests pag"],
      ["2260", "RUSTFLAGS=-Awarnings cargo test --package bat --test integration_tests syntax"],
      ["1892", "RUSTFLAGS=-Awarnings cargo test --package bat --test integration_tests ignored_suffix_arg"],
      ["562", "RUSTFLAGS=-Awarnings cargo test --package bat --test integration_tests cache"],
    ],
  ],
  [
    "astral-sh/ruff",
    "parse_log_cargo",
    "",
    [
      ["15626", "cargo test --package ruff_linter --lib rules::flake8_simplify::tests"],
      ["15543", "cargo test --package ruff_linter --lib rules::pyupgrade"],
      ["15443", "cargo test --package ruff_linter --lib rules::flake8_bandit"],
      ["15394", "cargo test --package ruff_linter --lib rules::flake8_pie"],
      ["15356", "cargo test --package ruff_linter --lib rules::pycodestyle"],
      ["15330", "cargo test --package ruff_linter --lib rules::eradicate"],
      ["15309", "cargo test --package ruff_linter 'f52'"],
    ],
  ],
  [
    "tokio-rs/tokio",
    "parse_log_cargo",
    "",
    [
      ["6724", "cargo test --test io_write_all_buf --no-fail-fast"],
      ["6838", "cargo test --test uds_stream --no-fail-fast"],
      ["6752", "cargo test --test time_delay_queue --no-fail-fast"],
      ["4867", "cargo test --test sync_broadcast --no-fail-fast"],
      ["4898", 'RUSTFLAGS="--cfg tokio_unstable" cargo test --features full --test rt_metrics'],
      ["6603", "cargo test --test sync_mpsc --no-fail-fast"],
      ["6551", 'RUSTFLAGS="--cfg tokio_unstable" cargo test --features full --test rt_metrics --no-fail-fast'],
      ["4384", "RUSTFLAGS=-Awarnings cargo test --package tokio --test net_types_unwind --features full --no-fail-fast"],
      ["7139", 'RUSTFLAGS="--cfg tokio_unstable" cargo test --test fs_file --no-fail-fast'],
    ],
  ],
  [
    "uutils/coreutils",
    "parse_log_cargo",
    "",
    [
      ["6690", "cargo test --no-fail-fast -- test_cp_cp test_cp_same_file test_cp_multiple_files test_cp_single_file test_cp_no_file"],
      ["6731", "cargo test backslash --no-fail-fast"],
      ["6575", "cargo test cksum --no-fail-fast"],
      ["6682", "cargo test mkdir --no-fail-fast"],
      ["6377", "cargo test test_env --no-fail-fast"],
    ],
  ],
  [
    "nushell/nushell",
    "parse_log_cargo",
    "cargo build",
    [
      ["13246", "cargo test -p nu-command --no-fail-fast --test main find::"],
      ["12950", "cargo test external_arguments --no-fail-fast", ""],
      ["12901", "cargo test --no-fail-fast shell::env", ""],
      ["13831", "cargo test -p nu-command --no-fail-fast split_column"],
      ["13605", "cargo test -p nu-command --no-fail-fast ls::"],
    ],
  ],
  [
    "tokio-rs/axum",
    "parse_log_cargo",
    "",
    [
      ["2096", "RUSTFLAGS=-Awarnings cargo test --package axum --lib -- routing::tests::fallback"],
      ["1934", "RUSTFLAGS=-Awarnings cargo test --package axum --lib -- routing::tests::fallback"],
      ["1730", "RUSTFLAGS=-Awarnings cargo test --package axum --lib -- routing::tests::mod state"],
      ["1119", "RUSTFLAGS=-Awarnings cargo test --package axum --lib slash"],
      ["734", "RUSTFLAGS=-Awarnings cargo test --package axum --lib -- routing::tests::head"],
      ["691", "RUSTFLAGS=-Awarnings cargo test --package axum --lib -- routing::tests::nest::nesting_router_at_root --exact"],
      ["682", "RUSTFLAGS=-Awarnings cargo test --package axum --lib trailing -- with_trailing_slash_post without_trailing_slash_post"],
    ],
  ],
];

/** Instances of two repositories that have parsers of their own. */
const parsers = new Map([
  ...["9141", "8047", "8167"].map((version) => [`jekyll/jekyll ${version}`, "parse_log_minitest"] as const),
  ...["8761", "8771"].map((version) => [`jekyll/jekyll ${version}`, "parse_log_cucumber"] as const),
  ["immutable-js/immutable-js 2006", "parse_log_jest"],
  ["immutable-js/immutable-js 2005", "parse_log_jest_json"],
]);

const byInstance = new Map(
  repos.flatMap(([repo, parser, common, tests]) =>
    tests.map(([version, command, build = common]) => {
      const key = `${repo} ${version}`;
      return [key.toLowerCase(), { command, parser: parsers.get(key) ?? parser, build }] as const;
    }),
  ),
);

export type MultilingualTests = { command: string; parser: string; build: string };

/** Returns null if the table does not have the instance. Ignores case, because rows spell some repositories in small letters. */
export function multilingualTestsOf(repo: string, version: string): MultilingualTests | null {
  return byInstance.get(`${repo} ${version}`.toLowerCase()) ?? null;
}
