//! What the tool `warptrace` shares with other programs that record from a command line, such as
//! `warptrace-bench`: the options of a recording, the recording itself, and the words for what came of it.
//!
//! For programs of this workspace. Recordings of programs of your own go through the crate `warptrace`.

pub mod exit;
pub mod numbers;
pub mod output;
pub mod recording;
pub mod whole_file;
