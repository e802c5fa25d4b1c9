//! Golden tests: the compiled kernels, the spliced kernels and the encoder's kernels must not change.
//!
//! The PTX depends on the device compiler. So the golden file names its compiler, and the tests compare only
//! PTX from that compiler.

use std::path::Path;

use warptrace_build::Compiler;
use warptrace_host::encoder_ptx;
use warptrace_ptx::splice::{Options, splice};
use warptrace_workloads::ProgramInfo;

use super::hashes::{self, Ways};
use super::{PROGRAMS, compiled};

/// Prefix of the line that names the compiler.
const COMPILER: &str = "# compiled by ";

/// Removes the hashes of crates from mangled names, as in `Cs8PXYNMM2bC3_16warptrace_encode`. They depend on
/// the path of the crate and on its manifest.
fn without_crate_hashes(text: &str) -> String {
    let mut parts = text.split("Cs");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str("Cs");
        let hash = part.split_once('_').filter(|(hash, rest)| {
            hash.chars().all(|c| c.is_ascii_alphanumeric()) && rest.starts_with(|c: char| c.is_ascii_digit())
        });
        out.push_str(hash.map_or(part, |(hash, _)| &part[hash.len()..]));
    }
    out
}

/// Sorts the declarations of shared arrays, which are adjacent, by name. The compiler emits them in the order
/// of macro expansion, which has no meaning.
pub(crate) fn with_arrays_in_order(text: &str) -> String {
    let is_array = |line: &&str| line.starts_with(".shared .align 16 .b8 block_shared_");
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    if let Some(first) = lines.iter().position(is_array) {
        let count = lines[first..].iter().take_while(|line| is_array(line)).count();
        lines[first..first + count].sort_unstable();
    }
    lines.concat()
}

#[test]
fn hashes_of_crates_are_taken_out_of_names() {
    let text = "call _RNvNtCs8PXYNMM2bC3_16warptrace_encode5merge1f, Css, Csa_b;";
    assert_eq!(without_crate_hashes(text), "call _RNvNtCs_16warptrace_encode5merge1f, Css, Csa_b;");
}

/// With `is_part`, checks only a part of the ways for each program.
pub(crate) fn check(is_part: bool) {
    let Some(ptx) = compiled() else { return };
    let compiler = Compiler::find().expect("the kernels are compiled").version;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/ptx/hashes.txt");
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    let of = golden.lines().find_map(|line| line.strip_prefix(COMPILER));
    if let Some(of) = of.filter(|of| *of != compiler && !hashes::overwrites()) {
        eprintln!("skipped: the hashes are of PTX of {of}, this is of {compiler}");
        return;
    }
    let mut lines = vec![
        format!("{COMPILER}{compiler}"),
        format!("encoder {}", hashes::hash(&without_crate_hashes(&encoder_ptx()))),
    ];
    let ways = |remainder| match is_part {
        true => Ways::Part { remainder, of: PROGRAMS.len() },
        false => Ways::All,
    };
    for (number, program) in PROGRAMS.iter().enumerate() {
        let kernels: Vec<&str> =
            program.kernels().chain(program.automatic().iter().flat_map(ProgramInfo::kernels)).collect();
        let options = Options { kernels: Some(&kernels), ..Options::default() };
        let untraced = splice(ptx, &options).expect("the kernels are there").text;
        lines.push(format!("{} untraced {}", program.name, hashes::hash(&untraced)));
        lines.extend(hashes::of_spliced(program.name, &[&untraced], ways(number)));
    }
    hashes::check(&path, &lines, ways(0));
}

#[test]
fn kernels_and_what_is_spliced_of_them_stay_the_same_text() {
    check(true);
}
