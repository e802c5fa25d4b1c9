//! The compiled kernels: is each trace point there, can all of them be traced in each way, and is the machine
//! code what it should be?
//!
//! Without a device compiler there are no kernels to look at, without NVIDIA's programs no machine code: each
//! test says so.

mod after;
mod assembled;
mod chosen;
mod compilers;
mod counted;
mod golden;
#[path = "../../../../tracer-device/ptx/tests/hashes/mod.rs"]
mod hashes;
mod machine_code;
mod markers;
mod sass;
mod source;
mod span_code;
mod spliced;
mod usage;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::LazyLock;

use warptrace_build::{ARCHITECTURES, Ptxas};
use warptrace_format::Counting;
use warptrace_host::traced_registers;
use warptrace_ptx::splice::{Options, Recording, splice};
use warptrace_workloads::{PTX, ProgramInfo, dmr, fault, fractal, matmul, mis, mst, nbody, stress, triad};

const PROGRAMS: [ProgramInfo; 9] = [
    fractal::PROGRAM,
    nbody::PROGRAM,
    mis::PROGRAM,
    mst::PROGRAM,
    dmr::PROGRAM,
    matmul::PROGRAM,
    fault::PROGRAM,
    stress::PROGRAM,
    triad::PROGRAM,
];

/// Recordings that differ in all that they may differ in.
const RECORDINGS: [Recording; 4] = [
    Recording { counting: Counting::Never, ..Recording::DEFAULT },
    Recording::DEFAULT,
    Recording { counting: Counting::Never, dual: true, ..Recording::DEFAULT },
    Recording { counting: Counting::All, dual: true, ..Recording::DEFAULT },
];

/// Returns the compiled module, or `None` after saying why there is none.
fn compiled() -> Option<&'static str> {
    if PTX.is_empty() {
        eprintln!("skipped: built without a device compiler, so there is no PTX; run `cargo xtask setup`");
        return None;
    }
    Some(PTX)
}

/// Returns a module of the kernels that have trace points, or `None` after saying why there is none.
fn ptx() -> Option<&'static str> {
    static CHOSEN: LazyLock<String> = LazyLock::new(|| {
        let kernels: Vec<&str> = kernels().into_iter().collect();
        let options = Options { kernels: Some(&kernels), ..Options::default() };
        splice(PTX, &options).unwrap_or_else(|error| panic!("{error}")).text
    });
    compiled().map(|_| CHOSEN.as_str())
}

/// The assembler, or `None` after saying why there is none that does.
fn assembler() -> Option<Ptxas> {
    let found = Ptxas::find(&workspace()).and_then(|ptxas| {
        let unknown = ptxas.unknown_architectures()?;
        Ok((ptxas, unknown))
    });
    match found {
        Ok((ptxas, unknown)) if unknown.is_empty() => Some(ptxas),
        Ok((_, unknown)) => {
            eprintln!(
                "skipped: the assembler is too old for {}; run `cargo xtask setup`",
                unknown.join(", ")
            );
            None
        }
        Err(error) => {
            eprintln!("skipped: {error}");
            None
        }
    }
}

/// The workspace's root.
fn workspace() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The names of all kernels, with trace points of either kind.
fn kernels() -> BTreeSet<&'static str> {
    let both = PROGRAMS.iter().flat_map(|program| [Some(*program), program.automatic()]);
    both.flatten().flat_map(|program| program.kernels().collect::<Vec<_>>()).collect()
}

/// `90` for `sm_90`.
fn number(architecture: &str) -> u32 {
    let number = architecture.strip_prefix("sm_").and_then(|number| number.parse().ok());
    number.unwrap_or_else(|| panic!("`{architecture}` is one of {ARCHITECTURES:?}"))
}

/// Makes all kernels, untraced and traced, as a device of this architecture gets them.
fn traced(text: &str, recording: Recording, architecture: &str, registers: &[(&str, u32)]) -> String {
    let options = Options {
        recording: Some(recording),
        registers,
        architecture: number(architecture),
        ..Options::default()
    };
    splice(text, &options).unwrap_or_else(|error| panic!("{recording:?}: {error}")).text
}

/// How many registers traced kernels may have on this architecture.
fn registers(assembler: &Ptxas, folder: &Path, text: &str, architecture: &str) -> Vec<(&'static str, u32)> {
    let path = folder.join(format!("untraced-{architecture}.ptx"));
    std::fs::write(&path, text).expect("the folder takes files");
    let said = assembler.assemble(&path, architecture).unwrap_or_else(|error| panic!("{error}"));
    let usage = usage::parse(&said);
    let limit = |kernel: &'static str| {
        let used = usage.get(kernel).unwrap_or_else(|| panic!("{architecture}: `{kernel}` is not assembled"));
        (kernel, traced_registers(used.registers))
    };
    kernels().into_iter().map(limit).collect()
}
