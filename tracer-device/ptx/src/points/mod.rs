//! Puts markers into PTX of other compilers, which has none, and says what each one stands for.
//!
//! [`splice`](crate::splice) records at markers. [`mark`] adds them to the PTX of nvcc, NVRTC, clang or any
//! other compiler, at basic blocks, at branches, at loops or at functions. It returns a [`Point`] for each
//! one: where it is in the PTX and, if the compiler wrote `.loc`, in the source. Markers are comments, so the
//! kernels of the marked text compute as before.
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
//! # Which blocks have no marker
//!
//! A block has a point but no marker if another point's events tell its own, masks included: it has one
//! predecessor, which goes nowhere else, and nothing stands between the two markers at which lanes may part,
//! meet or leave. [`Marked::implied`] names such points. A join never is one: which lanes arrive there in one
//! group is for the hardware to choose.

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
    /// PTX, for [`splice`](crate::splice::splice).
    pub text: String,
    /// What the markers stand for, by id: the first has [`PointOptions::first_id`], each other one more.
    pub points: Vec<Point>,
    /// Points without a marker, whose events a reader of the trace fills in.
    pub implied: Vec<Implied>,
    /// The kernels that have markers, in the order of the text.
    pub kernels: Vec<KernelInfo>,
    /// Functions that were asked for and have no markers: name, as in the PTX, and reason.
    pub skipped: Vec<(String, String)>,
    /// The accesses to memory and the named values that have a marker of data, by number: the first has
    /// [`PointOptions::first_site`], each other one more. Of each kernel values come first, then the other
    /// accesses that are recorded, then those that follow from them.
    pub sites: Vec<Site>,
    /// Functions of which not all is recorded that was asked for, accesses or what calls through pointers
    /// lead to: name, as in the PTX, and reason.
    pub unrecorded: Vec<(String, String)>,
}

/// A point of a function at which execution is recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    /// Location id of its events, 1 to 65,535.
    pub id: u16,
    /// The function's name as in the PTX, mangled.
    pub function: Arc<str>,
    /// What an event means.
    pub kind: PointKind,
    /// The basic block, an index in [`Cfg::blocks`](crate::Cfg::blocks) of the original text's function. For
    /// a branch and its sides, the block that the branch ends.
    pub block: usize,
    /// Line, from 1, in the original text, of the block's first instruction; for a branch and its sides, of
    /// the branch.
    pub ptx_line: usize,
    /// Column there in characters, from 1.
    pub ptx_column: usize,
    /// Where the source has that instruction, or the first behind it in the block that the source has.
    /// `None` if the compiler did not say.
    pub source: Option<SourcePlace>,
    /// The calls through which that line was inlined into the function, innermost first.
    pub inlined_at: Arc<[CallSite]>,
    /// Id of the point of the innermost loop around it that has one, 0 if none has. Smaller than `id`.
    pub parent: u16,
    /// Whether it is a loop whose iterations a recording can count.
    pub counted: bool,
    /// The name that the source gives to it, for points of the kind [`Named`](PointKind::Named); the
    /// instruction, for waits.
    pub name: Option<Arc<str>>,
    /// What is known of the wait that begins here, of points of the kinds [`Barrier`](PointKind::Barrier) and
    /// [`Wait`](PointKind::Wait).
    pub wait: Option<Box<PointWait>>,
}

/// What the text tells of a wait.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PointWait {
    /// The barrier: `bar 0`, `cluster`, `mbarrier full+8`. `?` stands for what is known at run time only, as
    /// in `mbarrier full+?`. Empty if it waits at none.
    pub barrier: String,
    /// The phase (parity) whose end is waited for, or `?`; empty if there are none.
    pub phase: String,
    /// The asynchronous copies that it waits for.
    pub copies: Vec<PointCopy>,
    /// Whether it waits for all of these, and for no others, whenever lanes come there.
    pub is_certain: bool,
    /// Where it waits, if the point is where its block begins.
    pub at: Option<PointCopy>,
}

/// Where an asynchronous copy is issued, or lanes wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PointCopy {
    /// Where the source has it; `None` if the compiler did not say.
    pub source: Option<SourcePlace>,
    /// Line, from 1, in the original text.
    pub ptx_line: usize,
    /// Column there in characters, from 1.
    pub ptx_column: usize,
}

/// What an event at a point means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum PointKind {
    /// The function was entered.
    Entry,
    /// A basic block began.
    Block,
    /// The first block of a loop began: once for each iteration, and once more where the loop tests at its
    /// start whether it ends.
    LoopBody,
    /// Lanes came to a `bra`, `ret` or `exit` under a predicate whose taken side has no point of its own,
    /// because its block can be reached in other ways too. Lanes that do not come to the branch's `NotTaken`
    /// next took it.
    Branch,
    /// A branch, `bra` under a predicate, was taken.
    Taken,
    /// A branch, `ret` or `exit` under a predicate was not taken.
    NotTaken,
    /// Lanes came to a `.pragma "WARPTRACE name"` in the code, which `tracer-host/include/warptrace.cuh`
    /// makes of `WARPTRACE("name")`. Whatever points are asked for, these are among them.
    Named,
    /// Lanes came to a barrier of their block.
    Barrier,
    /// Lanes came to where they wait otherwise: for other threads, for a copy, or for time to pass.
    Wait,
    /// The wait at the point before, a [`Barrier`](PointKind::Barrier) or a [`Wait`](PointKind::Wait), is
    /// over.
    Waited,
}

impl PointKind {
    /// The kind's name, and in a few words what an event means.
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

    /// Says in a few words what an event means.
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

/// Points without markers, whose events follow from the events of another point.
///
/// Behind each event at `after` stands one event at each of `points`, in that order, with the same lanes and
/// with no other event of the lanes between them. So a run of n events at `after` is n times the sequence
/// of `after` and `points`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Implied {
    /// Id of the point that has a marker.
    pub after: u16,
    /// Ids of the points that follow it, in the order of their execution; at least one.
    pub points: Vec<u16>,
}

/// A kernel, for who launches it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelInfo {
    /// The kernel's name as in the PTX, mangled.
    pub name: String,
    /// Its parameters.
    pub parameters: Vec<ParamLayout>,
}

/// Where a kernel's parameter is in the launch's parameter buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParamLayout {
    /// Size in bytes.
    pub size: usize,
    /// Alignment in bytes, a power of two.
    pub align: usize,
    /// Offset in the buffer, in bytes.
    pub offset: usize,
}

/// Why a module cannot be marked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PointError {
    /// The text is no PTX.
    #[error("the PTX cannot be read: {0}")]
    Parse(#[from] ParseError),
    /// A kernel that was asked for is not there.
    #[error("there is no kernel `{name}` in the PTX; it has: {known}")]
    NoKernel {
        /// The kernel.
        name: String,
        /// The kernels that there are.
        known: String,
    },
    /// The first id is 0, which names no location.
    #[error("the first id is 0: ids of points are 1 to 65,535, numbers of sites 1 to 32,767")]
    FirstId,
    /// The text has markers already.
    #[error(
        "line {line}, column {column}: the PTX has trace points of its own, so that ids would clash: trace it as it is"
    )]
    AlreadyMarked {
        /// Line of the first marker, from 1.
        line: usize,
        /// Column of the first marker in characters, from 1.
        column: usize,
    },
    /// A mistake of this crate.
    #[error("the markers could not be put in place: {0}")]
    Edit(#[from] EditError),
}

/// Puts markers into PTX that has none.
///
/// Ids follow the text, function by function; but a loop's point comes before the points within. The same
/// text and options give the same ids. A function whose control flow cannot be read, whose parameters cannot
/// be laid out, or whose points would need ids above 65,535 gets no marker, and [`Marked::skipped`] says why.
///
/// # Errors
/// If the text is no PTX or has markers, `first_id` is 0, or a kernel is not there.
pub fn mark(text: &str, options: &PointOptions<'_>) -> Result<Marked, PointError> {
    if options.first_id == 0 || options.first_site == 0 {
        return Err(PointError::FirstId);
    }
    mark_functions(text, options, true)
}

/// Puts markers of data into PTX whose events have markers of their own: in front of the accesses to memory
/// that are asked for, and at the values. [`Marked::points`] and [`Marked::kernels`] are empty.
///
/// # Errors
/// If the text is no PTX or has markers of data, `first_site` is 0, or a kernel is not there.
pub fn mark_accesses(text: &str, options: &PointOptions<'_>) -> Result<Marked, PointError> {
    if options.first_site == 0 {
        return Err(PointError::FirstId);
    }
    mark_functions(text, options, false)
}

/// Marks the functions that are asked for: points and data, or data alone if `events` is false.
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
