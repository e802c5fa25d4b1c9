//! `warptrace-query`: the commands of `warptrace` that ask in SQL, or ask workers. A program of its own, since
//! DataFusion makes it large.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    warptrace_cli::warptrace_query()
}
