//! Why a module cannot be spliced.

use super::Placement;
use crate::{CfgError, EditError, Function, Module, ParseError, Position};

/// Why a module cannot be spliced.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpliceError {
    /// The text is no PTX.
    #[error("the PTX cannot be read: {0}")]
    Parse(#[from] ParseError),
    /// A marker cannot be read.
    #[error("line {line}, column {column}: {problem}: build kernels and tracer from the same version")]
    Marker {
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// What is wrong.
        problem: String,
    },
    /// A kernel that was asked for is not there.
    #[error("there is no kernel `{name}` in the PTX; it has: {known}")]
    NoKernel {
        /// The kernel.
        name: String,
        /// The kernels that there are.
        known: String,
    },
    /// A kernel that was asked for cannot be traced.
    #[error("`{kernel}` cannot be traced: {reason}")]
    LeftOut {
        /// The kernel.
        kernel: String,
        /// Why not.
        reason: String,
    },
    /// Records cannot be kept where the options say.
    #[error(
        "`{kernel}` calls `{function}`, which has trace points and is not inlined: its lanes' records must be in shared memory, not in {}",
        .placement.name()
    )]
    Placement {
        /// The kernel.
        kernel: String,
        /// The function.
        function: String,
        /// What was asked for.
        placement: Placement,
    },
    /// A variable would be there twice, once for the warps that record and once for the others.
    #[error(
        "`{function}` declares `{variable}`, which its warps share, in a place that would be there twice, for warps that record \
         and for others: choose whole launches of it, not blocks or warps"
    )]
    Shared {
        /// The function.
        function: String,
        /// The variable.
        variable: String,
    },
    /// Lanes cannot be recorded from a visit on and so as well.
    #[error(
        "what is recorded from a visit of a location on is recorded event by event: leave counted loops out"
    )]
    After,
    /// Sites cannot record and so as well.
    #[error(
        "addresses and values are recorded with the policy `stop`, from the kernel's start on, and without a dual recording: \
         leave {with} out"
    )]
    Data {
        /// What was asked for as well.
        with: &'static str,
    },
    /// A function that is not inlined has sites.
    #[error("`{function}` is not inlined, and has markers of data: only kernels record addresses and values")]
    DataInFunction {
        /// The function.
        function: String,
    },
    /// A kernel has too many sites.
    #[error(
        "the markers of data in `{kernel}` span {sites} sites: a kernel records at most {}, so ask for fewer state spaces",
        warptrace_abi::data::MAX_KERNEL_SITES
    )]
    Sites {
        /// The kernel.
        kernel: String,
        /// How many, from the first number to the last.
        sites: u32,
    },
    /// Lanes cannot wait for the host.
    #[error(
        "the policy `stream` needs PTX for sm_{needed} or later, and this PTX is for {target}: compile it for sm_{needed}, \
         or choose another policy"
    )]
    Streamed {
        /// The architecture.
        target: String,
        /// The oldest that will do, 70 for `sm_70`.
        needed: u32,
    },
    /// A name that the tracer needs is taken.
    #[error("the PTX uses the name `{name}`, which belongs to the tracer: rename it")]
    Reserved {
        /// The name.
        name: &'static str,
    },
    /// The control flow of a function with markers cannot be read.
    #[error("the control flow of `{function}` cannot be read: {source}")]
    Flow {
        /// The function.
        function: String,
        /// Why not.
        source: CfgError,
    },
    /// A mistake of this crate.
    #[error("the recording sequences could not be put in place: {0}")]
    Edit(#[from] EditError),
}

impl SpliceError {
    /// Makes the error of a marker at an offset.
    pub(super) fn marker(module: &Module<'_>, offset: usize, problem: String) -> Self {
        let Position { line, column } = module.position(offset);
        Self::Marker { line, column, problem }
    }

    /// Makes the error of a function's control flow.
    pub(super) fn flow(function: &Function<'_>) -> impl FnOnce(CfgError) -> Self {
        let function = function.name.to_owned();
        |source| Self::Flow { function, source }
    }
}
