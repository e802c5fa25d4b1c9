//! Tests of the compiled kernels: their trace points, all ways to trace them, and their machine code.
//!
//! Without a device compiler there are no kernels, and each test prints that it is skipped.
//! `machine_code.txt` stores properties of the assembled texts.

mod after;
mod assembled;
mod chosen;
mod convergence;
mod counted;
mod full;
mod golden;
#[path = "../../../../../tracer-device/ptx/tests/it/hashes/mod.rs"]
mod hashes;
mod machine_code;
mod markers;
mod occupancy;
mod source;
mod span_code;
mod spliced;
#[path = "../../../../../tracer-device/ptx/tests/it/stored_code/mod.rs"]
mod stored_code;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::LazyLock;

use stored_code::{CodeStore, Function, Functions};
use warptrace_build::ARCHITECTURES;
use warptrace_format::Counting;
use warptrace_host::traced_registers;
use warptrace_ptx::splice::{Options, Recording, Spliced, TRACED_SUFFIX, TracedKernel, splice};
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

/// Recordings that cover all values of `counting` and `dual`.
const RECORDINGS: [Recording; 4] = [
    Recording { counting: Counting::Never, ..Recording::DEFAULT },
    Recording::DEFAULT,
    Recording { counting: Counting::Never, dual: true, ..Recording::DEFAULT },
    Recording { counting: Counting::All, dual: true, ..Recording::DEFAULT },
];

/// An architecture of each generation. The others get one recording each.
const DISTINCT: [&str; 5] = ["sm_75", "sm_80", "sm_90", "sm_100", "sm_120"];

/// A kernel may spill up to `FEW_BYTES` (stores and loads, in bytes per lane) if its limit leaves fewer than
/// `ROOM` registers for recording.
const ROOM: u32 = 16;
const FEW_BYTES: u32 = 272;

/// Returns the compiled module. Prints a message and returns `None` if it does not exist.
fn compiled() -> Option<&'static str> {
    static IN_ORDER: LazyLock<String> = LazyLock::new(|| golden::with_arrays_in_order(PTX));
    if PTX.is_empty() {
        eprintln!("skipped: built without a device compiler, so there is no PTX; run `cargo xtask setup`");
        return None;
    }
    Some(&IN_ORDER)
}

/// The kernels that have trace points. Prints a message and returns `None` without them.
fn ptx() -> Option<&'static str> {
    static CHOSEN: LazyLock<String> = LazyLock::new(|| {
        let kernels: Vec<&str> = kernels().into_iter().collect();
        let options = Options { kernels: Some(&kernels), ..Options::default() };
        splice(compiled().unwrap_or_default(), &options).unwrap_or_else(|error| panic!("{error}")).text
    });
    compiled().map(|_| CHOSEN.as_str())
}

fn workspace() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn kernels() -> BTreeSet<&'static str> {
    let both = PROGRAMS.iter().flat_map(|program| [Some(*program), program.automatic()]);
    both.flatten().flat_map(|program| program.kernels().collect::<Vec<_>>()).collect()
}

/// Returns `90` for `sm_90`.
fn number(architecture: &str) -> u32 {
    let number = architecture.strip_prefix("sm_").and_then(|number| number.parse().ok());
    number.unwrap_or_else(|| panic!("`{architecture}` is one of {ARCHITECTURES:?}"))
}

const STORE: &str = "tests/it/ptx/machine_code.txt";

fn store() -> CodeStore {
    CodeStore::open(STORE)
}

/// All kernels, untraced and traced, as a device of an architecture receives them.
struct Assembled {
    text: String,
    functions: Functions,
    limits: Vec<(&'static str, u32)>,
    /// The traced copies.
    traced: Vec<TracedKernel>,
}

impl Assembled {
    /// Prints a message and returns `None` if the machine code is unavailable.
    fn new(store: &CodeStore, text: &str, recording: Recording, architecture: &str) -> Option<Self> {
        let untraced = store.functions(text, architecture)?;
        let limit = |kernel: &'static str| (kernel, traced_registers(untraced[kernel].registers));
        let limits: Vec<_> = kernels().into_iter().map(limit).collect();
        let options = Options {
            recording: Some(recording),
            registers: &limits,
            architecture: number(architecture),
            ..Options::default()
        };
        let Spliced { text, kernels: traced, .. } =
            splice(text, &options).unwrap_or_else(|error| panic!("{recording:?}: {error}"));
        let functions = store.functions(&text, architecture)?;
        Some(Self { text, functions, limits, traced })
    }

    fn both(&self, kernel: &str) -> [Function; 2] {
        [kernel, &format!("{kernel}{TRACED_SUFFIX}")].map(|name| self.functions[name])
    }

    /// Checks that each traced kernel stays within its limit on registers and spills no more than the
    /// untraced kernel, or slightly more if the limit leaves few registers for recording.
    fn check_registers(&self) {
        for (kernel, limit) in &self.limits {
            let [untraced, traced] = self.both(kernel);
            assert!((1..=*limit).contains(&traced.registers), "{kernel}: {traced:?}, at most {limit}");
            let allowed = if untraced.registers + ROOM > *limit { FEW_BYTES } else { 0 };
            let spills = traced.spill_bytes.saturating_sub(untraced.spill_bytes);
            assert!(spills <= allowed, "{kernel}: {traced:?}, {untraced:?}");
        }
    }
}
