//! The `warptrace` tool: record, look at, decode and verify traces of GPU kernels.

use std::process::ExitCode;

/// Where the host empties logs while a kernel runs, many threads take and give memory at once; the system's
/// allocator has them wait for each other.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    warptrace_cli::warptrace()
}
