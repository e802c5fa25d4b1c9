//! The tool as a person meets it: what it prints, where, and its exit codes.
#![allow(clippy::unwrap_used, reason = "a failed test says where")]

mod arguments;
mod decode;
mod help;
mod info;
mod interrupted;
mod losses;
mod new;
mod programs;
mod record;
mod support;
mod unreadable;
mod window;
mod window_streamed;
