//! The tool from the user's view: output and exit codes.
#![allow(clippy::unwrap_used, reason = "a failed test says where")]

mod access_tables;
mod accesses;
mod answers;
#[cfg(feature = "parquet")]
mod answers_duckdb;
mod answers_figures;
mod arguments;
mod bad_files;
mod bad_traces;
mod bounded;
mod buffers;
mod decode;
mod demo;
mod dependencies;
mod export;
mod figures;
mod files;
mod golden;
mod help;
mod info;
#[cfg(target_os = "linux")]
mod interrupted;
mod labels;
mod launch_sites;
mod left_out;
mod lost_times;
mod manual;
mod marks;
mod mutated;
mod new;
#[cfg(unix)]
mod no_room;
mod options;
mod origin;
mod pages;
#[cfg(feature = "query")]
mod query;
mod query_program;
mod ranks;
mod reference;
mod report;
mod report_browser;
mod roles;
mod run;
mod said;
mod schedule;
mod schemas;
#[cfg(feature = "store")]
mod served;
mod sets;
mod state;
#[cfg(feature = "store")]
mod stores;
mod streams;
mod support;
mod tables;
mod terminal;
mod tui;
mod unreadable;
mod unrecorded;
mod unwritten_reads;
mod values;
mod widths;
mod work;
