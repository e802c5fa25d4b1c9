//! Integration tests of the package.

mod after;
mod chosen;
mod common;
mod device_memory;
mod encoding;
mod flattening;
mod helper_file;
mod launches;
mod made_runs;
mod merging;
mod misuse;
mod operations;
mod reconvergence;
mod rings;
mod stack_overflow;
mod streamed_memory;
mod streaming;
mod tracing;
