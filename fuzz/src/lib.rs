//! Fuzzing on stable Rust. A target calls a library with bytes. Inputs are derived from a corpus and a
//! number; the same number produces the same input on every machine.

mod damage;
mod random;

use std::path::{Path, PathBuf};
use std::{fs, io};

pub use damage::damaged;
pub use random::Random;

/// A function that accepts any bytes and panics on a finding.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Target {
    /// Name of the target, and of its corpus folder except for `analyse` and `ptx_parse`.
    pub name: &'static str,
    /// Runs the target on an input.
    pub run: fn(&[u8]),
    /// Derives an input from an input of the corpus.
    pub damage: fn(&[u8], &mut Random) -> Vec<u8>,
}

/// Passes the list of targets to a macro: name, function to run, and function to derive inputs.
#[doc(hidden)]
#[macro_export]
macro_rules! with_targets {
    ($list:ident) => {
        $list! {
            open_file: warptrace_decoder::fuzzing::open, damaged;
            // Traces with times are a separate target, so that inputs of the other targets keep their
            // numbers.
            times: warptrace_analysis::fuzzing::analyse_arbitrary, damaged;
            data: warptrace_decoder::fuzzing::open, damaged;
            runs: warptrace_decoder::fuzzing::open, damaged;
            analyse: warptrace_analysis::fuzzing::analyse_arbitrary, damaged;
            codec_round_trip: warptrace_format::codec::fuzzing::round_trip, damage::any_bytes;
            codec_decode: warptrace_format::codec::fuzzing::decode_arbitrary, damage::any_bytes;
            column_round_trip: warptrace_columns::fuzzing::round_trip, damage::any_bytes;
            column_decode: warptrace_columns::fuzzing::decode_arbitrary, damage::any_bytes;
            ptx_parse: warptrace_ptx::fuzzing::parse_arbitrary, damage::any_bytes;
        }
    };
}

macro_rules! targets {
    ($($name:ident: $run:path, $damage:path;)*) => {
        /// All targets.
        pub const TARGETS: &[Target] =
            &[$(Target { name: stringify!($name), run: $run, damage: $damage }),*];
    };
}
with_targets!(targets);

/// Reads the corpus of a target, in the order of file names.
///
/// # Errors
/// Returns an error if a file cannot be read or if the corpus is empty.
pub fn corpus(target: &str) -> io::Result<Vec<(PathBuf, Vec<u8>)>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = match target {
        "ptx_parse" => root.join("../tracer-device/ptx/tests/golden"),
        // `analyse` also reads traces and uses the same files.
        "analyse" => root.join("corpus/open_file"),
        name => root.join("corpus").join(name),
    };
    let mut paths = fs::read_dir(&folder)?
        .map(|entry| Ok(entry?.path()))
        .filter(|path| path.as_ref().map_or(true, |path| path.is_file()))
        .collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    if paths.is_empty() {
        return Err(io::Error::new(io::ErrorKind::NotFound, format!("no input in {}", folder.display())));
    }
    paths.into_iter().map(|path| fs::read(&path).map(|bytes| (path, bytes))).collect()
}
