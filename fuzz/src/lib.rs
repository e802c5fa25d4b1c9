//! Fuzzing on stable Rust: targets, each a call of a library, and inputs made of a corpus by numbers, so that
//! the same number gives the same input everywhere.

mod damage;
mod random;

use std::path::{Path, PathBuf};
use std::{fs, io};

pub use damage::damaged;
pub use random::Random;

/// Something that takes any bytes, and panics on a finding.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Target {
    /// Its name, and that of its folder of the corpus.
    pub name: &'static str,
    /// Runs it.
    pub run: fn(&[u8]),
    /// Makes an input of one of the corpus.
    pub damage: fn(&[u8], &mut Random) -> Vec<u8>,
}

/// Gives the list of targets to a macro: of each its name, what runs it, and what makes an input of one of the corpus.
#[doc(hidden)]
#[macro_export]
macro_rules! with_targets {
    ($list:ident) => {
        $list! {
            open_file: warptrace_decoder::fuzzing::open, damaged;
            // Traces with times, apart, so that inputs of the others keep their numbers.
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

/// Reads the inputs from which a target begins, in the order of their names.
///
/// # Errors
/// The system's, and if there are none.
pub fn corpus(target: &str) -> io::Result<Vec<(PathBuf, Vec<u8>)>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = match target {
        "ptx_parse" => root.join("../tracer-device/ptx/tests/golden"),
        // The same files, as both read traces.
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
