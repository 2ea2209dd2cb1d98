/**
 * Says which parser reads the log of a repository's tests. It follows multi-swe-bench at commit 24f493f8, where each repository
 * has a class. Repositories are left out if no parser here reads as their class does, or if their class finds nothing.
 */
const byParser: readonly (readonly [string, string])[] = [
  [
    "multi_swe_cargo",
    `BurntSushi/ripgrep alacritty/alacritty bee-san/RustScan clap-rs/clap fish-shell/fish-shell helix-editor/helix nushell/nushell
     rayon-rs/rayon rusqlite/rusqlite rust-lang/mdBook serde-rs/serde sharkdp/bat sharkdp/fd tokio-rs/bytes tokio-rs/tokio tokio-rs/tracing`,
  ],
  [
    "multi_swe_go_subtests",
    `beego/beego caddyserver/caddy cli/cli concourse/concourse fatedier/frp gohugoio/hugo istio/istio jesseduffield/lazygit junegunn/fzf
     labstack/echo nats-io/nats-server nektos/act prometheus/prometheus syncthing/syncthing`,
  ],
  ["multi_swe_go", "etcd-io/etcd gin-gonic/gin go-gorm/gorm grpc/grpc-go zeromicro/go-zero"],
  ["multi_swe_ctest", "fmtlib/fmt nlohmann/json simdjson/simdjson"],
  ["multi_swe_ctest_timed", "OpenMathLib/OpenBLAS fluent/fluent-bit libgit2/libgit2 libsdl-org/SDL CGAL/cgal root-project/root"],
  ["multi_swe_catch2", "catchorg/Catch2"],
  ["multi_swe_automake", "facebook/zstd jqlang/jq"],
  ["multi_swe_boxes", "ponylang/ponyc yhirose/cpp-httplib"],
  ["multi_swe_maven", "alibaba/fastjson2"],
  ["multi_swe_maven_coloured", "apache/dubbo fasterxml/jackson-core fasterxml/jackson-databind fasterxml/jackson-dataformat-xml"],
  ["multi_swe_gson", "google/gson"],
  ["multi_swe_gradle", "elastic/logstash mockito/mockito"],
  [
    "multi_swe_gradle_cached",
    `junit-team/junit5 micronaut-projects/micronaut-core spotbugs/spotbugs Kotlin/kotlinx.coroutines ankidroid/Anki-Android pinterest/ktlint
     streetcomplete/StreetComplete thunderbird/thunderbird-android`,
  ],
  ["multi_swe_jib", "googlecontainertools/jib"],
  ["multi_swe_jest", "anuraghazra/github-readme-stats iamkun/dayjs"],
  ["multi_swe_jest_files", "colinhacks/zod remix-run/react-router"],
  ["multi_swe_darkreader", "darkreader/darkreader"],
  ["multi_swe_vitest", "sveltejs/svelte vuejs/core"],
  ["multi_swe_insomnia", "Kong/insomnia"],
  ["multi_swe_mocha", "axios/axios"],
  ["multi_swe_express", "expressjs/express"],
  ["multi_swe_material_ui", "mui/material-ui"],
];

const parsers = new Map(byParser.flatMap(([parser, repos]) => repos.split(/\s+/).map((repo) => [repo, parser] as const)));

/** Pull requests with a log form of their own: repository, first number, last number, parser. */
const exceptions: readonly (readonly [string, number, number, string])[] = [
  ["facebook/zstd", 1831, 2703, "multi_swe_zstd_decoder"],
  ["facebook/zstd", 1230, 1748, "multi_swe_zstd_pool"],
  ...[4212, 4852, 5555, 5841].map((number) => ["expressjs/express", number, number, "multi_swe_mocha"] as const),
];

export const multiSweRepos: readonly string[] = [...parsers.keys()];

/** Returns null if the table does not have the repository. */
export function multiSweParserOf(repo: string, number: number): string | null {
  const other = exceptions.find(([name, first, last]) => name === repo && first <= number && number <= last);
  return other?.[3] ?? parsers.get(repo) ?? null;
}
