//! Puts markers into PTX of other compilers, which has none, and says what each one stands for.
//!
//! [`splice`](crate::splice) records at markers. [`mark`] adds them to the PTX of nvcc, NVRTC, clang or any
//! other compiler, at basic blocks, at branches, at loops or at functions. It returns a [`Point`] for each
//! one: where it is in the PTX and, if the compiler wrote `.loc`, in the source. Markers are comments, so the
//! kernels of the marked text are those of the original.
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

mod blocks;
mod choose;
mod counted;
mod options;
mod params;
mod sites;
mod source;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

pub use self::options::{PointOptions, Points, UnknownPoints};
use self::params::layout;
use self::sites::{Plan, Site};
pub use self::source::{CallSite, SourcePlace};
use self::source::{Positions, Sources};
use crate::splice::Marker;
use crate::{EditError, Edits, Function, Module, ParseError, StatementKind};

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
    /// The calls through which that place was inlined into the function, innermost first.
    pub inlined_at: Arc<[CallSite]>,
    /// Id of the point of the innermost loop around it that has one, 0 if none has. Smaller than `id`.
    pub parent: u16,
    /// Whether it is a loop whose iterations a recording can count.
    pub counted: bool,
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
    /// because its block can be reached in other ways too. Those that do not come to the branch's `NotTaken`
    /// next took it.
    Branch,
    /// A branch, `bra` under a predicate, was taken.
    Taken,
    /// A branch, `ret` or `exit` under a predicate was not taken.
    NotTaken,
}

/// Points without markers, whose events follow from those of another point.
///
/// Behind each event at `after` stands one event at each of `points`, in that order, with the same lanes and
/// with no other event of those lanes between them. So a run of n events at `after` is n times the sequence
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
    #[error("the first id is 0: ids of points are 1 to 65,535")]
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
/// Functions are marked in the order of the text, and points numbered by the text too, but for loops, whose
/// points come before those that the loops hold. The same text and options give the same ids. A function whose
/// control flow cannot be read, whose parameters cannot be laid out, or whose points would need ids above
/// 65,535 gets no marker, and [`Marked::skipped`] says why.
///
/// # Errors
/// If the text is no PTX or has markers, `first_id` is 0, or a kernel is not there.
pub fn mark(text: &str, options: &PointOptions<'_>) -> Result<Marked, PointError> {
    if options.first_id == 0 {
        return Err(PointError::FirstId);
    }
    let module = Module::parse(text)?;
    refuse_markers(&module)?;
    let wanted = wanted_functions(&module, options)?;
    let sources = Sources::of(&module);
    let mut marked = Marked::default();
    let mut edits = Edits::new();
    // The offset in the original text of each point.
    let mut offsets = Vec::new();
    let mut next = u32::from(options.first_id);
    for function in module.definitions().filter(|function| wanted.contains(function.name)) {
        let mut skip = |reason: String| marked.skipped.push((function.name.to_owned(), reason));
        let Some(body) = &function.body else { continue };
        let parameters = match function.is_entry().then(|| layout(&function.params)).transpose() {
            Ok(parameters) => parameters,
            Err(reason) => {
                skip(reason);
                continue;
            }
        };
        let plan = match Plan::of(body, options.points) {
            Ok(plan) => plan,
            Err(error) => {
                skip(format!("its control flow cannot be read: {error}"));
                continue;
            }
        };
        let count = plan.sites.len();
        let end = next as usize + count;
        if end > usize::from(u16::MAX) + 1 {
            skip(format!("its {count} points do not fit: ids end at 65,535, and the next is {next}"));
            continue;
        }
        let first = next;
        // All ids of the function are at most 65,535.
        let id = |site: usize| u16::try_from(first as usize + site).unwrap_or(u16::MAX);
        let name: Arc<str> = function.name.into();
        let lines = sources.lines(body);
        for (index, site) in plan.sites.iter().enumerate() {
            let (source, inlined_at) = lines.first_of(site.statements.clone());
            offsets.push(site.offset(body));
            marked.points.push(Point {
                id: id(index),
                function: Arc::clone(&name),
                kind: site.kind,
                block: site.block,
                ptx_line: 0,
                ptx_column: 0,
                source,
                inlined_at,
                parent: site.parent.map_or(0, id),
                counted: site.counted,
            });
        }
        plan.insert(&mut edits, text, id);
        marked.implied.extend(plan.implied.iter().map(|(after, points)| Implied {
            after: id(*after),
            points: points.iter().map(|point| id(*point)).collect(),
        }));
        next += u32::try_from(count).unwrap_or(u32::MAX);
        if let Some(parameters) = parameters {
            marked.kernels.push(KernelInfo { name: function.name.to_owned(), parameters });
        }
    }
    Positions::of(text, &offsets).zip(&mut marked.points).for_each(|(position, point)| {
        (point.ptx_line, point.ptx_column) = (position.line, position.column);
    });
    marked.text = edits.apply(text)?;
    Ok(marked)
}

/// Refuses a module that has markers.
fn refuse_markers(module: &Module<'_>) -> Result<(), PointError> {
    let bodies = module.definitions().filter_map(|function| function.body.as_ref());
    let mut statements = bodies.flat_map(|body| &body.statements);
    let marker = statements.find(|statement| match statement.kind {
        StatementKind::Comment(text) => Marker::parse(text).is_some(),
        _ => false,
    });
    match marker.map(|marker| module.position(marker.span.start)) {
        None => Ok(()),
        Some(position) => Err(PointError::AlreadyMarked { line: position.line, column: position.column }),
    }
}

/// Returns the names of the functions to mark: the kernels that are asked for and all that they name, directly
/// or not.
fn wanted_functions<'a>(
    module: &'a Module<'a>,
    options: &PointOptions<'_>,
) -> Result<BTreeSet<&'a str>, PointError> {
    let Some(kernels) = options.kernels else {
        return Ok(module.definitions().map(|function| function.name).collect());
    };
    let entries = || module.definitions().filter(|function| function.is_entry());
    for kernel in kernels {
        if !entries().any(|entry| entry.name == *kernel) {
            let known = entries().map(|entry| entry.name).collect::<Vec<_>>().join(", ");
            return Err(PointError::NoKernel { name: (*kernel).to_owned(), known });
        }
    }
    let by_name: HashMap<&str, &Function<'_>> =
        module.definitions().map(|function| (function.name, function)).collect();
    let mut work: Vec<&Function<'_>> = entries().filter(|entry| kernels.contains(&entry.name)).collect();
    let mut wanted: BTreeSet<&str> = work.iter().map(|entry| entry.name).collect();
    while let Some(function) = work.pop() {
        let Some(body) = &function.body else { continue };
        for operand in body.instructions().flat_map(|(_, instruction)| &instruction.operands) {
            if let Some(named) = by_name.get(operand.text).filter(|named| !named.is_entry())
                && wanted.insert(named.name)
            {
                work.push(named);
            }
        }
    }
    Ok(wanted)
}

impl Site {
    /// Returns the offset in the original text that stands for the point.
    fn offset(&self, body: &crate::Body<'_>) -> usize {
        let mut statements = self.statements.clone().filter_map(|index| body.statements.get(index));
        let first = statements.clone().find(|statement| statement.instruction().is_some());
        first.or_else(|| statements.next()).map_or(body.close, |statement| statement.span.start)
    }
}
