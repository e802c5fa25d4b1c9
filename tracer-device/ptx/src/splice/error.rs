//! Errors of splicing.

use super::Placement;
use crate::{CfgError, EditError, Function, Module, ParseError, Position};

/// Reasons why a module cannot be spliced.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpliceError {
    /// The text is not valid PTX.
    #[error("the PTX cannot be read: {0}")]
    Parse(#[from] ParseError),
    /// A marker cannot be read.
    #[error("line {line}, column {column}: {problem}: build kernels and tracer from the same version")]
    Marker {
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// Description of the problem.
        problem: String,
    },
    /// The module does not have a requested kernel.
    #[error("there is no kernel `{name}` in the PTX; it has: {known}")]
    NoKernel {
        /// Name of the missing kernel.
        name: String,
        /// Names of the module's kernels.
        known: String,
    },
    /// A requested kernel cannot be traced.
    #[error("`{kernel}` cannot be traced: {reason}")]
    LeftOut {
        /// Name of the kernel.
        kernel: String,
        /// The reason.
        reason: String,
    },
    /// Records cannot be kept in the requested placement.
    #[error(
        "`{kernel}` calls `{function}`, which has trace points and is not inlined: its lanes' records must be in shared memory, not in {}",
        .placement.name()
    )]
    Placement {
        /// Name of the kernel.
        kernel: String,
        /// Name of the function.
        function: String,
        /// The requested placement.
        placement: Placement,
    },
    /// A variable would exist twice, for the warps that record and for the others.
    #[error(
        "`{function}` declares `{variable}`, which its warps share, in a place that would be there twice, for warps that record \
         and for others: choose whole launches of it, not blocks or warps"
    )]
    Shared {
        /// Name of the function.
        function: String,
        /// Name of the variable.
        variable: String,
    },
    /// Recording from a visit on cannot be combined with counted loops.
    #[error(
        "what is recorded from a visit of a location on is recorded event by event: leave counted loops out"
    )]
    After,
    /// Data sites cannot be combined with another option.
    #[error(
        "addresses and values are recorded with the policy `stop`, from the kernel's start on, and without a dual recording: \
         leave {with} out"
    )]
    Data {
        /// The other option.
        with: &'static str,
    },
    /// A function that is not inlined has sites.
    #[error("`{function}` is not inlined, and has markers of data: only kernels record addresses and values")]
    DataInFunction {
        /// Name of the function.
        function: String,
    },
    /// A kernel has too many sites.
    #[error(
        "the markers of data in `{kernel}` span {sites} sites: a kernel records at most {}, so ask for fewer state spaces",
        warptrace_abi::data::MAX_KERNEL_SITES
    )]
    Sites {
        /// Name of the kernel.
        kernel: String,
        /// Number of sites from the first to the last.
        sites: u32,
    },
    /// The architecture does not support streamed logs.
    #[error(
        "the policy `stream` needs PTX for sm_{needed} or later, and this PTX is for {target}: compile it for sm_{needed}, \
         or choose another policy"
    )]
    Streamed {
        /// The architecture of the module.
        target: String,
        /// The oldest supported architecture, 70 for `sm_70`.
        needed: u32,
    },
    /// The text uses a name that is reserved for the tracer.
    #[error("the PTX uses the name `{name}`, which belongs to the tracer: rename it")]
    Reserved {
        /// The name.
        name: &'static str,
    },
    /// The control flow of a function with markers cannot be analysed.
    #[error("the control flow of `{function}` cannot be read: {source}")]
    Flow {
        /// Name of the function.
        function: String,
        /// The reason.
        source: CfgError,
    },
    /// The sequences cannot be inserted: an internal error.
    #[error("the recording sequences could not be put in place: {0}")]
    Edit(#[from] EditError),
}

impl SpliceError {
    pub(super) fn marker(module: &Module<'_>, offset: usize, problem: String) -> Self {
        let Position { line, column } = module.position(offset);
        Self::Marker { line, column, problem }
    }

    pub(super) fn flow(function: &Function<'_>) -> impl FnOnce(CfgError) -> Self {
        let function = function.name.to_owned();
        |source| Self::Flow { function, source }
    }
}
