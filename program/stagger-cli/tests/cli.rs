//! End-to-end tests of the program with real commands, signals, pipes and terminals.

#![cfg(unix)]

#[path = "cli/certificate.rs"]
mod certificate;
#[path = "cli/origin.rs"]
mod origin;
#[macro_use]
#[path = "cli/support.rs"]
mod support;

#[path = "cli/advise.rs"]
mod advise;
#[path = "cli/blocks.rs"]
mod blocks;
#[path = "cli/budget.rs"]
mod budget;
#[path = "cli/check.rs"]
mod check;
#[path = "cli/check_files.rs"]
mod check_files;
#[path = "cli/check_traces.rs"]
mod check_traces;
#[path = "cli/code_blocks.rs"]
mod code_blocks;
#[path = "cli/command_line.rs"]
mod command_line;
#[path = "cli/completions.rs"]
mod completions;
#[path = "cli/configured.rs"]
mod configured;
#[path = "cli/control.rs"]
mod control;
#[path = "cli/descendants.rs"]
mod descendants;
#[path = "cli/drill.rs"]
mod drill;
#[path = "cli/drill_client.rs"]
mod drill_client;
#[path = "cli/drill_outage.rs"]
mod drill_outage;
#[path = "cli/files.rs"]
mod files;
#[path = "cli/guide.rs"]
mod guide;
#[path = "cli/help.rs"]
mod help;
#[path = "cli/http.rs"]
mod http;
#[path = "cli/http_table.rs"]
mod http_table;
#[path = "cli/incidents.rs"]
mod incidents;
#[path = "cli/init.rs"]
mod init;
#[path = "cli/logging.rs"]
mod logging;
#[path = "cli/markdown.rs"]
mod markdown;
#[path = "cli/nested.rs"]
mod nested;
#[path = "cli/outside.rs"]
mod outside;
#[path = "cli/pages.rs"]
mod pages;
#[path = "cli/peers.rs"]
mod peers;
#[path = "cli/plan.rs"]
mod plan;
#[path = "cli/recipes/mod.rs"]
mod recipes;
#[path = "cli/results.rs"]
mod results;
#[path = "cli/serve/mod.rs"]
mod serve;
#[path = "cli/signals.rs"]
mod signals;
#[path = "cli/simulate.rs"]
mod simulate;
#[path = "cli/simulate_outage.rs"]
mod simulate_outage;
#[path = "cli/simulate_report.rs"]
mod simulate_report;
#[path = "cli/simulate_system.rs"]
mod simulate_system;
#[path = "cli/stdin.rs"]
mod stdin;
// What `stagger serve` exports as a test, so that it compiles and passes.
#[rustfmt::skip]
#[path = "cli/golden/storm_test.rs"]
mod storm_test;
#[path = "cli/store.rs"]
mod store;
#[path = "cli/streams.rs"]
mod streams;
#[path = "cli/terminal.rs"]
mod terminal;
#[path = "cli/time_limit.rs"]
mod time_limit;
#[path = "cli/timeout.rs"]
mod timeout;
#[path = "cli/tips.rs"]
mod tips;
#[path = "cli/wait/mod.rs"]
mod wait;
