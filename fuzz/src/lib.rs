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

/// All targets.
pub const TARGETS: [Target; 9] = [
    Target { name: "open_file", run: warptrace_decoder::fuzzing::open, damage: damaged },
    // Traces with times, apart, so that inputs of the others keep their numbers.
    Target { name: "times", run: warptrace_analysis::fuzzing::analyse_arbitrary, damage: damaged },
    Target { name: "data", run: warptrace_decoder::fuzzing::open, damage: damaged },
    Target { name: "analyse", run: warptrace_analysis::fuzzing::analyse_arbitrary, damage: damaged },
    Target {
        name: "codec_round_trip",
        run: warptrace_format::codec::fuzzing::round_trip,
        damage: damage::any_bytes,
    },
    Target {
        name: "codec_decode",
        run: warptrace_format::codec::fuzzing::decode_arbitrary,
        damage: damage::any_bytes,
    },
    Target {
        name: "column_round_trip",
        run: warptrace_columns::fuzzing::round_trip,
        damage: damage::any_bytes,
    },
    Target {
        name: "column_decode",
        run: warptrace_columns::fuzzing::decode_arbitrary,
        damage: damage::any_bytes,
    },
    Target { name: "ptx_parse", run: warptrace_ptx::fuzzing::parse_arbitrary, damage: damage::any_bytes },
];

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
