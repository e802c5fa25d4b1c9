//! The compiled kernels: is each trace point there, can all of them be traced in each way, and is the machine
//! code what it should be?
//!
//! Without a device compiler there are no kernels to look at: each test says so. What the assembler made of their
//! texts is stored in `machine_code.txt`.

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

/// Recordings that differ in all that they may differ in.
const RECORDINGS: [Recording; 4] = [
    Recording { counting: Counting::Never, ..Recording::DEFAULT },
    Recording::DEFAULT,
    Recording { counting: Counting::Never, dual: true, ..Recording::DEFAULT },
    Recording { counting: Counting::All, dual: true, ..Recording::DEFAULT },
];

/// A kernel whose limit leaves recording fewer registers than this may spill a little: stores and loads, in bytes
/// of a lane.
const ROOM: u32 = 16;
const FEW_BYTES: u32 = 272;

/// Returns the compiled module, or `None` after saying why there is none.
fn compiled() -> Option<&'static str> {
    static IN_ORDER: LazyLock<String> = LazyLock::new(|| golden::with_arrays_in_order(PTX));
    if PTX.is_empty() {
        eprintln!("skipped: built without a device compiler, so there is no PTX; run `cargo xtask setup`");
        return None;
    }
    Some(&IN_ORDER)
}

/// Returns a module of the kernels that have trace points, or `None` after saying why there is none.
fn ptx() -> Option<&'static str> {
    static CHOSEN: LazyLock<String> = LazyLock::new(|| {
        let kernels: Vec<&str> = kernels().into_iter().collect();
        let options = Options { kernels: Some(&kernels), ..Options::default() };
        splice(compiled().unwrap_or_default(), &options).unwrap_or_else(|error| panic!("{error}")).text
    });
    compiled().map(|_| CHOSEN.as_str())
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

/// The file with the machine code of the kernels' texts.
const STORE: &str = "tests/it/ptx/machine_code.txt";

fn store() -> CodeStore {
    CodeStore::open(STORE)
}

/// All kernels, untraced and traced, as a device of an architecture gets them.
struct Assembled {
    text: String,
    functions: Functions,
    /// How many registers each traced kernel may have.
    limits: Vec<(&'static str, u32)>,
    /// The traced copies.
    traced: Vec<TracedKernel>,
}

impl Assembled {
    /// Splices a module and looks its machine code up. Returns `None`, and says why, if that is not possible.
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

    /// A kernel's own code and that of its traced copy.
    fn both(&self, kernel: &str) -> [Function; 2] {
        [kernel, &format!("{kernel}{TRACED_SUFFIX}")].map(|name| self.functions[name])
    }

    /// Checks that each traced kernel has registers, no more than its limit, and spills no more than its own
    /// instructions do; a little more where the limit leaves recording few registers.
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
