//! The program `warptrace-bench`.

use std::io;
use std::process::ExitCode;

fn main() -> ExitCode {
    let code = warptrace_bench::run(std::env::args_os(), &mut io::stdout(), &mut io::stderr());
    ExitCode::from(code)
}
