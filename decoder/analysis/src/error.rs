//! Why a trace could not be analysed.

use warptrace_decoder::DecodeError;

use crate::words::no_block;

/// A trace, or a part of it, that cannot be analysed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnalysisError {
    /// No kernel of the trace has this name.
    #[error("the trace has no kernel `{name}`; it has {known}")]
    UnknownKernel {
        /// The name asked for.
        name: String,
        /// The names of the trace.
        known: String,
    },
    /// The trace has no such launch.
    #[error("the trace has no launch {launch}; its {launches} launches are listed by `warptrace info`")]
    UnknownLaunch {
        /// The number asked for.
        launch: u32,
        /// Launches of the trace.
        launches: usize,
    },
    /// No launch with the kernel and number asked for.
    #[error(
        "launch {launch} is not one of kernel `{kernel}`; `warptrace info` lists the launches of each kernel"
    )]
    NoLaunchOfKernel {
        /// The launch asked for.
        launch: u32,
        /// The kernel asked for.
        kernel: String,
    },
    /// No chosen launch has this block.
    #[error("{}", no_block(*launch, *grid, *block))]
    UnknownBlock {
        /// The last launch that was looked at.
        launch: u32,
        /// Its blocks along x, y, z.
        grid: [u32; 3],
        /// The block asked for.
        block: [u32; 3],
    },
    /// No block of the chosen launches has this warp.
    #[error("blocks of launch {launch} have warps 0 to {}, not {warp}", warps - 1)]
    UnknownWarp {
        /// The last launch that was looked at.
        launch: u32,
        /// Warps of its blocks.
        warps: u32,
        /// The warp asked for.
        warp: u32,
    },
    /// A file elsewhere does not have what was asked for.
    #[error("{0}")]
    NotThere(String),
    /// Lanes went from and to more pairs of locations than are counted.
    #[error(
        "more than 1,048,576 different edges or causes, which are not counted: they would take too much memory; look at a \
         part, with `--kernel`, `--launch`, `--block` or `--warp`; `info`, `decode` and `export` take all"
    )]
    TooManyEdges,
    /// Several files have more different locations than there are numbers.
    #[error(
        "the traces have more than 65,534 different locations together: look at those of one program, or at fewer"
    )]
    TooManyLocations,
    /// There is nothing to look at.
    #[error("no traces to look at")]
    NoFiles,
    /// The trace is damaged.
    #[error("{source}; `warptrace verify` lists all that is wrong with the trace")]
    Decode {
        /// What is wrong, and where.
        #[from]
        source: DecodeError,
    },
}

impl AnalysisError {
    /// Whether something was selected that the trace does not have.
    pub const fn is_of_selection(&self) -> bool {
        matches!(
            self,
            Self::UnknownKernel { .. }
                | Self::UnknownLaunch { .. }
                | Self::NoLaunchOfKernel { .. }
                | Self::UnknownBlock { .. }
                | Self::UnknownWarp { .. }
                | Self::NotThere(_)
        )
    }
}
