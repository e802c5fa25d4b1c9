//! `warptrace-query`: commands that use SQL or query workers. A separate program: DataFusion makes it large.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    warptrace_cli::warptrace_query()
}
