//! Inserts markers into PTX that has none, and describes the point of each marker.
//!
//! [`splice`](crate::splice) records at markers. [`mark`] adds them to the PTX of nvcc, NVRTC, clang or other
//! compilers, at basic blocks, branches, loops, functions or waits, and returns a [`Point`] for each: its
//! position in the PTX and, with `.loc`, in the source. Markers are comments, which do not change results.
//!
//! ```
//! use warptrace_ptx::points::{PointKind, PointOptions, mark};
//!
//! let text = "
//! .version 7.8
//! .target sm_80
//! .address_size 64
//! .visible .entry count(.param .u64 out) {
//!     .reg .pred %p1; .reg .b32 %r<3>;
//!     mov.u32 %r1, 0;
//! LOOP:
//!     add.u32 %r1, %r1, 1;
//!     setp.lt.u32 %p1, %r1, 9;
//!     @%p1 bra LOOP;
//!     ret;
//! }";
//! let marked = mark(text, &PointOptions::default())?;
//! let kinds: Vec<PointKind> = marked.points.iter().map(|point| point.kind).collect();
//! assert_eq!(kinds, [PointKind::Entry, PointKind::LoopBody, PointKind::Block]);
//! assert!(marked.text.contains("LOOP:\n\t// warptrace.loop.tick 2 1\n    add"));
//! # Ok::<(), warptrace_ptx::points::PointError>(())
//! ```
//!
//! # Blocks without a marker
//! With [`Points::Blocks`], in a function without named points and waits, a block has a point but no marker
//! if the events of another point determine its events and masks: its only predecessor has no other
//! successor, and lanes cannot diverge, reconverge or exit between the two markers. [`Marked::implied`] lists
//! such points. Join blocks always have a marker: the hardware decides which lanes arrive there together.

mod accesses;
mod barriers;
mod blocks;
mod choose;
mod copies;
mod counted;
mod data_sites;
mod derived;
mod marking;
mod named;
mod options;
pub(crate) mod params;
mod sites;
mod source;
mod waits;

use std::fmt;
use std::sync::Arc;

pub use self::data_sites::{MAX_VALUE_NAME, Site, SiteValue};
use self::marking::Marking;
pub(crate) use self::marking::with_named;
pub use self::options::{PointOptions, Points, UnknownPoints};
pub use self::source::{CallSite, LineTable, SourcePlace, users_place};
pub use crate::waiting::with_waits;
use crate::{EditError, Module, ParseError};
pub use warptrace_abi::data::{Derived, SiteKind, SiteSpace, ValueType};

/// PTX with markers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marked {
    /// The PTX text, for [`splice`](crate::splice::splice).
    pub text: String,
    /// The points, by id. The ids are consecutive from [`PointOptions::first_id`].
    pub points: Vec<Point>,
    /// Points without a marker. A reader of the trace adds their events.
    pub implied: Vec<Implied>,
    /// The marked kernels, in text order.
    pub kernels: Vec<KernelInfo>,
    /// Requested functions that could not be marked: name as in the PTX, and reason.
    pub skipped: Vec<(String, String)>,
    /// Memory accesses and named values with a data marker, by number, consecutive from
    /// [`PointOptions::first_site`]. In a function: values, then recorded accesses, then derived ones.
    pub sites: Vec<Site>,
    /// Functions with unrecorded accesses or values: name as in the PTX, and reason. A last entry, for the
    /// first function with calls through pointers, counts all such calls: called functions are not recorded.
    pub unrecorded: Vec<(String, String)>,
}

/// A point of a function at which execution is recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    /// Location id of its events, 1 to 65,535.
    pub id: u16,
    /// The function's mangled name, as in the PTX.
    pub function: Arc<str>,
    /// Kind of the point.
    pub kind: PointKind,
    /// The basic block: an index in [`Cfg::blocks`](crate::Cfg::blocks) for the original text. For a branch
    /// and its sides, the block that ends with the branch.
    pub block: usize,
    /// Line in the original text, from 1: of the block's first instruction, or of the branch, name or wait.
    pub ptx_line: usize,
    /// Column in characters, from 1.
    pub ptx_column: usize,
    /// Source position, `None` if unknown. The first of these that is known:
    /// - for an entry, the function's position in [`PointOptions::lines`];
    /// - with [`Points::Blocks`], for an entry, a block or a loop at whose end lanes may diverge, the position
    ///   where the block computes the predicate of the branch, return, exit or trap, or of that instruction;
    /// - the first position of an instruction in the block, or the position of the branch, wait or name.
    pub source: Option<SourcePlace>,
    /// The inlined calls that lead to that position, innermost first.
    pub inlined_at: Arc<[CallSite]>,
    /// Id of the point of the innermost enclosing loop with a point; 0 if there is none. Less than `id`.
    pub parent: u16,
    /// Whether this is a loop whose iterations a recording can count.
    pub counted: bool,
    /// The name in the source for points of the kind [`Named`](PointKind::Named); the instruction for waits.
    pub name: Option<Arc<str>>,
    /// The wait that begins at a [`Barrier`](PointKind::Barrier) or [`Wait`](PointKind::Wait). In a function
    /// without points at waits, the first barrier in the block of an entry, a block or a loop.
    pub wait: Option<Box<PointWait>>,
}

/// A wait, as far as the text shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PointWait {
    /// The barrier: `bar 0`, `cluster`, `mbarrier full+8`. `?` replaces parts that are known only at run
    /// time, as in `mbarrier full+?`. Empty if the wait is not at a barrier.
    pub barrier: String,
    /// The phase (parity) whose completion ends the wait, or `?`. Empty if the barrier has no phases.
    pub phase: String,
    /// The asynchronous copies that the wait is for.
    pub copies: Vec<PointCopy>,
    /// Whether the wait is always for exactly these copies.
    pub is_certain: bool,
    /// Position of the wait if the point is at the start of the block.
    pub at: Option<PointCopy>,
}

/// Position of an asynchronous copy or of a wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PointCopy {
    /// Source position; `None` if unknown.
    pub source: Option<SourcePlace>,
    /// Line in the original text, from 1.
    pub ptx_line: usize,
    /// Column in characters, from 1.
    pub ptx_column: usize,
}

/// Kind of a point: the meaning of its events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum PointKind {
    /// The function was entered.
    Entry,
    /// A basic block began.
    Block,
    /// An iteration of a loop began: the loop's first block was entered. A loop that tests its condition at
    /// the start has one more event than iterations.
    LoopBody,
    /// Lanes reached a guarded `ret`, `exit` or `trap`, or a guarded `bra` whose taken side has no point
    /// because its block has other predecessors. Lanes whose next event is not its `NotTaken` took it.
    Branch,
    /// A guarded `bra` was taken.
    Taken,
    /// A guarded `bra`, `ret`, `exit` or `trap` was not taken.
    NotTaken,
    /// Lanes reached a `.pragma "WARPTRACE name"`, to which `tracer-host/include/warptrace.cuh` expands
    /// `WARPTRACE("name")`, or a comment `// WARPTRACE name`. Marked with every choice of points.
    Named,
    /// Lanes reached a barrier of their block.
    Barrier,
    /// Lanes reached another wait: for other threads, for a copy, or for time to pass.
    Wait,
    /// The wait of the preceding [`Barrier`](PointKind::Barrier) or [`Wait`](PointKind::Wait) ended.
    Waited,
}

impl PointKind {
    /// Returns the kind's name and a short description of its events.
    const fn words(self) -> [&'static str; 2] {
        match self {
            Self::Entry => ["entry", "function entered"],
            Self::Block => ["block", "basic block begins"],
            Self::LoopBody => ["loop body", "iteration begins"],
            Self::Branch => ["branch", "branch reached"],
            Self::Taken => ["taken", "branch taken"],
            Self::NotTaken => ["not taken", "branch not taken"],
            Self::Named => ["named", "named in the source"],
            Self::Barrier => ["barrier", "barrier reached"],
            Self::Wait => ["wait", "wait begins"],
            Self::Waited => ["waited", "wait is over"],
        }
    }

    /// Returns a short description of the kind's events.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        self.words()[1]
    }
}

impl fmt::Display for PointKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.words()[0])
    }
}

/// Points without markers, whose events follow from another point's. After each event at `after` comes one
/// event at each of `points`, in this order, with the same lanes and no other events of these lanes in
/// between. A run of n events at `after` is n repetitions of the sequence `after`, `points`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Implied {
    /// Id of the point with the marker.
    pub after: u16,
    /// Ids of the points that follow it, in execution order; at least one.
    pub points: Vec<u16>,
}

/// A kernel's name and parameters, for a launcher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelInfo {
    /// The kernel's mangled name, as in the PTX.
    pub name: String,
    /// The kernel's parameters.
    pub parameters: Vec<ParamLayout>,
}

/// Position of a kernel's parameter in the parameter buffer of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParamLayout {
    /// Size in bytes.
    pub size: usize,
    /// Alignment in bytes, a power of two.
    pub align: usize,
    /// Offset in the buffer in bytes.
    pub offset: usize,
}

/// Reasons why a module cannot be marked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PointError {
    /// The text is not valid PTX.
    #[error("the PTX cannot be read: {0}")]
    Parse(#[from] ParseError),
    /// The module does not have a requested kernel.
    #[error("there is no kernel `{name}` in the PTX; it has: {known}")]
    NoKernel {
        /// Name of the missing kernel.
        name: String,
        /// Names of the module's kernels.
        known: String,
    },
    /// The first id or the first site number is 0.
    #[error("the first id is 0: ids of points are 1 to 65,535, numbers of sites 1 to 32,767")]
    FirstId,
    /// The text already has markers.
    #[error(
        "line {line}, column {column}: the PTX has trace points of its own, so that ids would clash: trace it as it is"
    )]
    AlreadyMarked {
        /// Line of the first marker, from 1.
        line: usize,
        /// Column of the first marker in characters, from 1.
        column: usize,
    },
    /// The markers cannot be inserted: an internal error.
    #[error("the markers could not be put in place: {0}")]
    Edit(#[from] EditError),
}

/// Inserts markers into PTX that has none.
///
/// Ids follow the text order, function by function, but a loop's point comes before the points in the loop.
/// In a function, named points come after other points, and waits last. The same text and options give the
/// same ids. A function gets no marker if its control flow cannot be read, its parameters cannot be laid out,
/// or its ids would exceed 65,535; [`Marked::skipped`] gives the reason.
///
/// # Errors
/// Returns a [`PointError`] for invalid or marked PTX, a first id or number of 0, or a missing kernel.
pub fn mark(text: &str, options: &PointOptions<'_>) -> Result<Marked, PointError> {
    if options.first_id == 0 || options.first_site == 0 {
        return Err(PointError::FirstId);
    }
    mark_functions(text, options, true)
}

/// Inserts data markers into PTX that already has event markers: in front of requested memory accesses and at
/// named values. [`Marked::points`] and [`Marked::kernels`] are empty.
///
/// # Errors
/// Returns a [`PointError`] for invalid PTX, PTX with data markers, `first_site` 0, or a missing kernel.
pub fn mark_accesses(text: &str, options: &PointOptions<'_>) -> Result<Marked, PointError> {
    if options.first_site == 0 {
        return Err(PointError::FirstId);
    }
    mark_functions(text, options, false)
}

/// Marks the requested functions: points and data, or only data if `events` is false.
fn mark_functions(text: &str, options: &PointOptions<'_>, events: bool) -> Result<Marked, PointError> {
    let module = Module::parse(text)?;
    marking::refuse_markers(&module, events)?;
    let wanted = marking::wanted_functions(&module, options)?;
    let mut marking = Marking::new(&module, options);
    for function in module.definitions().filter(|function| wanted.contains(function.name)) {
        if events {
            marking.function(function);
        } else {
            marking.own_function(function);
        }
    }
    marking.finish()
}
