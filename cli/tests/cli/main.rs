//! The tool as a person meets it: what it prints, where, and its exit codes.
#![allow(clippy::unwrap_used, reason = "a failed test says where")]

mod answers;
mod answers_duckdb;
mod answers_figures;
mod arguments;
mod bad_files;
mod bad_traces;
mod decode;
mod demo;
mod dependencies;
mod export;
mod faults;
mod help;
mod info;
mod interrupted;
mod left_out;
mod losses;
mod manual;
mod marks;
mod new;
mod pages;
mod report;
mod report_browser;
mod run;
mod support;
mod tui;
mod unreadable;
mod window;
mod window_streamed;
