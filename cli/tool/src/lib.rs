//! What the tool `warptrace` shares with other programs that record from a command line, such as
//! `warptrace-bench`: the options of a recording, the recording itself, and the words for what came of it.
//!
//! For programs of this workspace. Recordings of programs of your own go through the crate `warptrace`.

mod arguments;
mod commands;
mod demo;
pub mod exit;
mod files;
mod losses;
mod nanoseconds;
pub mod numbers;
mod opened;
pub mod output;
mod query_program;
pub mod recording;
mod tool;
pub mod whole_file;

#[cfg(feature = "query")]
#[doc(hidden)]
pub use tool::warptrace_query;
#[doc(hidden)]
pub use tool::{in_process, warptrace};
