//! `warptrace-query`: the commands of `warptrace` that use SQL or query workers. A separate program, since
//! DataFusion makes it large.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    warptrace_cli::warptrace_query()
}
