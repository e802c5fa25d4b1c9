//! All integration tests of this package, in one binary.

mod assemble;
mod code;
mod errors;
mod exits;
mod foreign;
mod full;
mod golden;
mod hashes;
#[cfg(feature = "interpreter")]
mod interpreted;
mod linear;
mod module;
mod mutations;
mod outline;
mod points;
mod stored_code;
mod untouched;
mod waits;

/// The file with the machine code of texts.
const STORE: &str = "tests/data/machine_code.txt";
