/** The repositories in Rust. */
import type { MultilingualRepo } from "./multilingual-repo.ts";

export const rustRepos: readonly MultilingualRepo[] = [
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
