//! Recording options, recording and messages that the tool `warptrace` shares with other command-line
//! programs that record, such as `warptrace-bench`. Internal to this workspace: other programs record through
//! the crate `warptrace`.

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
