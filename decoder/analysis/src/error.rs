//! Errors of an analysis.

use warptrace_decoder::DecodeError;

use crate::words::no_block;

/// Error of an analysis.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnalysisError {
    /// No kernel of the trace has this name.
    #[error("the trace has no kernel `{name}`; it has {known}")]
    UnknownKernel {
        /// Requested name.
        name: String,
        /// Kernel names in the trace.
        known: String,
    },
    /// The trace has no launch with this number.
    #[error("the trace has no launch {launch}; its {launches} launches are listed by `warptrace info`")]
    UnknownLaunch {
        /// Requested number.
        launch: u32,
        /// Number of launches in the trace.
        launches: usize,
    },
    /// The requested launch is not a launch of the requested kernel.
    #[error(
        "launch {launch} is not one of kernel `{kernel}`; `warptrace info` lists the launches of each kernel"
    )]
    NoLaunchOfKernel {
        /// Requested launch.
        launch: u32,
        /// Requested kernel.
        kernel: String,
    },
    /// No selected launch has this block.
    #[error("{}", no_block(*launch, *grid, *block))]
    UnknownBlock {
        /// Last launch that was checked.
        launch: u32,
        /// Its blocks along x, y, z.
        grid: [u32; 3],
        /// Requested block.
        block: [u32; 3],
    },
    /// The blocks of the selected launches have no warp with this number.
    #[error("blocks of launch {launch} have warps 0 to {}, not {warp}", warps - 1)]
    UnknownWarp {
        /// Last launch that was checked.
        launch: u32,
        /// Warps per block of that launch.
        warps: u32,
        /// Requested warp.
        warp: u32,
    },
    /// The selection is not in a file of another process, or in any file of a set. Contains the message.
    #[error("{0}")]
    NotThere(String),
    /// The trace has more distinct pairs of locations than the analysis counts.
    #[error(
        "more than 1,048,576 different edges or causes, which are not counted: they would take too much memory; look at a \
         part, with `--kernel`, `--launch`, `--block` or `--warp`; `info`, `decode` and `export` take all"
    )]
    TooManyEdges,
    /// The files together have more distinct locations than there are location ids.
    #[error(
        "the traces have more than 65,534 different locations together: look at those of one program, or at fewer"
    )]
    TooManyLocations,
    /// The set of files is empty.
    #[error("no traces to look at")]
    NoFiles,
    /// The trace is damaged.
    #[error("{source}; `warptrace verify` lists all that is wrong with the trace")]
    Decode {
        /// Error of the decoder.
        #[from]
        source: DecodeError,
    },
}

impl AnalysisError {
    /// Returns true if the selection names something that the trace does not have.
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
