//! Hashes of PTX and golden files of hashes, to detect any change of a text.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use warptrace_format::Counting;
use warptrace_format::chosen::After;
use warptrace_ptx::splice::{LogKind, Options, Placement, Recording, SpliceError, splice};

/// Makes tests with golden files write them instead of comparing: `cargo xtask golden`.
const OVERWRITE: &str = "WARPTRACE_OVERWRITE_GOLDEN";

/// Maximum number of differing lines of each kind in a failure message.
const SHOWN: usize = 20;

const PLACEMENTS: [Placement; 3] = [Placement::Registers, Placement::Shared, Placement::Local];

/// Policies by the tool's names, with their kinds of logs.
const POLICIES: [(&str, LogKind); 3] =
    [("stop", LogKind::Kept), ("ring", LogKind::Ring), ("stream", LogKind::Streamed)];

/// From the third visit of location 2 on. Most texts have this location.
const AFTER: After = After { location: 2, count: std::num::NonZero::new(3).expect("it is not 0") };

const RECORDINGS: [(&str, Counting, bool); 6] = [
    ("proven", Counting::Proven, false),
    ("proven+dual", Counting::Proven, true),
    ("each", Counting::Never, false),
    ("counted", Counting::All, false),
    ("each+dual", Counting::Never, true),
    ("counted+dual", Counting::All, true),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ways {
    All,
    /// Ways whose number has this remainder modulo `of`. Used by the fast tier.
    Part {
        remainder: usize,
        of: usize,
    },
}

impl Ways {
    fn has(self, number: usize) -> bool {
        match self {
            Self::All => true,
            Self::Part { remainder, of } => number % of == remainder,
        }
    }
}

/// Returns a line for each way, for all texts together: `NAME PLACEMENT POLICY OPTIONS HASH BYTES`.
pub(crate) fn of_spliced(name: &str, texts: &[&str], ways: Ways) -> Vec<String> {
    let mut lines = Vec::new();
    let mut number = 0;
    for placement in PLACEMENTS {
        for (policy, logs) in POLICIES {
            let base = Options { architecture: 90, ..Options::default() };
            let mut add = |what: &str, recording: Recording, options: Options<'_>| {
                number += 1;
                if !ways.has(number) {
                    return;
                }
                let options = Options { recording: Some(recording), ..options };
                let made = texts.iter().map(|text| match splice(text, &options) {
                    Ok(spliced) => spliced.text,
                    Err(
                        error @ (SpliceError::Placement { .. }
                        | SpliceError::Shared { .. }
                        | SpliceError::Streamed { .. }),
                    ) => error.to_string(),
                    Err(error) => panic!("{name}, {options:?}: {error}"),
                });
                let made = hash(&made.collect::<String>());
                lines.push(format!("{name} {} {policy} {what} {made}", placement.name()));
            };
            for (what, counting, dual) in RECORDINGS {
                let placement = Some(placement);
                let recording = Recording { counting, dual, logs, placement, ..Recording::DEFAULT };
                add(what, recording, base);
                if !dual {
                    add(&format!("{what}+sm_80"), recording, Options { architecture: 80, ..base });
                    add(&format!("{what}+warps"), Recording { chooses: true, ..recording }, base);
                }
                if counting == Counting::Never {
                    add(&format!("{what}+after"), Recording { after: Some(AFTER), ..recording }, base);
                }
                if counting == Counting::All && dual {
                    add(&format!("{what}+marks"), recording, Options { marks: 1, ..base });
                }
            }
        }
    }
    lines
}

pub(crate) fn hash(text: &str) -> String {
    format!("{:08x} {}", crc32fast::hash(text.as_bytes()), text.len())
}

pub(crate) fn overwrites() -> bool {
    std::env::var_os(OVERWRITE).is_some_and(|value| value == "1")
}

/// Compares lines with a golden file, or writes the file if requested. Panics if they differ.
pub(crate) fn check(path: &Path, lines: &[String], ways: Ways) {
    if overwrites() {
        if ways == Ways::All {
            std::fs::write(path, lines.join("\n") + "\n").expect("the golden file can be written");
        }
        return;
    }
    let golden = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let now: BTreeSet<&str> = lines.iter().map(String::as_str).collect();
    let name = |line: &str| line.rsplitn(3, ' ').last().unwrap_or_default().to_owned();
    let names: BTreeSet<String> = now.iter().map(|line| name(line)).collect();
    let is_of_now = |line: &&str| ways == Ways::All || names.contains(&name(line));
    let golden: BTreeSet<&str> = golden.lines().filter(is_of_now).collect();
    let mut message = String::new();
    for (what, one, other) in [("now   ", &now, &golden), ("golden", &golden, &now)] {
        for line in one.difference(other).take(SHOWN) {
            let _ = writeln!(message, "  {what} {line}");
        }
    }
    assert!(
        now == golden,
        "PTX has changed: {} of {} lines of {} differ:\n{message}What was measured on a card was measured with the golden \
         text. If the change is meant, run `cargo xtask golden`, commit the file with what changes it, and say why.",
        now.difference(&golden).count(),
        now.len(),
        path.display(),
    );
}
