//! The `warptrace` tool: records, shows, decodes and verifies traces of GPU kernels.

use std::process::ExitCode;

/// Many host threads drain logs and allocate memory at the same time; the system's allocator serializes them.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    warptrace_cli::warptrace()
}
