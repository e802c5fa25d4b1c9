//! What a traced kernel records, and in which form: what is spliced for a GPU, what the simulator does, and
//! what devices are asked for.

use warptrace_format::Counting;
use warptrace_format::chosen::After;

/// What a traced kernel records, and in which form. Two kernels of the same source are the same code if this
/// is the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Recording {
    /// Which loops count their iterations, and record them where they end. On the simulator none is proven.
    pub counting: Counting,
    /// Whether each event is recorded on a second track too, as an entry of its own.
    pub dual: bool,
    /// Which logs the kernel writes.
    pub logs: LogKind,
    /// Whether the kernel looks which of its warps were chosen ([`warptrace_format::chosen`]); the others run
    /// its own instructions. If not, all warps record. The simulator always looks.
    pub chooses: bool,
    /// From where on lanes are recorded; `None`: from their start on. Neither loops can be
    /// [counted](Counting::All) then, nor [runs be written when they begin](LogKind::Streamed).
    pub after: Option<After>,
    /// Where lanes keep their records; `None` chooses for each kernel. The simulator ignores it.
    pub placement: Option<Placement>,
    /// Whether each warp writes where and when it ran: a [`WarpSpan`](warptrace_format::span::WarpSpan).
    pub spans: bool,
}

impl Recording {
    /// All of a kernel, in logs that stay until it has ended.
    pub const DEFAULT: Self = Self {
        counting: Counting::Proven,
        dual: false,
        logs: LogKind::Kept,
        chooses: false,
        after: None,
        placement: None,
        spans: false,
    };

    /// Returns how many tracks it has: two, if it is dual.
    #[must_use]
    pub const fn tracks(&self) -> u32 {
        if self.dual { 2 } else { 1 }
    }

    /// Returns which loops are counted: none where the time of each event matters, if that is not to be told.
    #[must_use]
    pub fn counted(&self) -> Counting {
        let each = self.after.is_some() || self.logs.has_open_runs();
        if each && self.counting == Counting::Proven { Counting::Never } else { self.counting }
    }
}

impl Default for Recording {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Which logs a traced kernel writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LogKind {
    /// Logs that stay until the kernel has ended ([`crate::log`]). What finds no room is lost.
    Kept,
    /// The same as rings, which keep each lane's latest runs.
    Ring,
    /// Logs that the host empties while the kernel runs ([`crate::stream`]).
    Streamed {
        /// Whether runs are there as soon as they begin: what lanes are in when a kernel hangs is known then.
        /// Each run costs a store more, and a repetition some instructions.
        open_runs: bool,
    },
}

impl LogKind {
    /// Returns whether the host empties the logs while the kernel runs.
    #[must_use]
    pub const fn is_streamed(self) -> bool {
        matches!(self, Self::Streamed { .. })
    }

    /// Returns whether runs are in the logs as soon as they begin.
    #[must_use]
    pub const fn has_open_runs(self) -> bool {
        matches!(self, Self::Streamed { open_runs: true })
    }
}

/// Where a traced kernel keeps each lane's record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Placement {
    /// In registers: eight a lane, and three for the second track. Only where all trace points stand in the
    /// kernel itself.
    Registers,
    /// In the block's dynamic shared memory, which a launch makes larger ([`crate::shared`]).
    Shared,
    /// In local memory: global memory that is each thread's own and stays in the first cache. Only where all
    /// trace points stand in the kernel itself.
    Local,
}

impl Placement {
    /// Returns the name that tools use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Registers => "registers",
            Self::Shared => "shared",
            Self::Local => "local",
        }
    }
}
