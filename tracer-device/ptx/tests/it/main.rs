//! All integration tests of this package, in one binary.

/// Makes a test of the fast tier and one of the full tier from each check. A check takes the argument given
/// for its tier, or an `Extent`.
macro_rules! in_both_tiers {
    ($fast:expr, $full:expr; $($(#[$meta:meta])* $name:ident: $check:expr;)*) => {
        $($(#[$meta])* #[test] fn $name() { $check($fast); })*

        mod full {
            use super::*;

            $(#[test] fn $name() { $check($full); })*
        }
    };
    ($($tests:tt)*) => { in_both_tiers! { Extent::Part, Extent::Full; $($tests)* } };
}

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
