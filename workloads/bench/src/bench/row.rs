//! The table that `bench` writes: a line for each run of a codec or of a compressor.

use serde::Serialize;
use warptrace_format::RAW_EVENT_BYTES;

/// What a line is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    /// A run of the program, traced or not.
    #[default]
    Run,
    /// Another compressor on the raw trace.
    Compressor,
}

/// One line. Times are in seconds.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct BenchRow {
    /// Day, UTC.
    pub(crate) date: String,
    /// Commit of the build.
    pub(crate) commit: String,
    /// Device and host.
    pub(crate) machine: String,
    /// The device's driver.
    pub(crate) driver: String,
    /// `cuda` or `simulator`; times from the latter are not performance.
    pub(crate) device: String,
    /// Program.
    pub(crate) program: String,
    /// Its input.
    pub(crate) input: String,
    /// The row of the thesis's Table A.1 to compare with, or empty.
    pub(crate) thesis: String,
    /// What the line is about.
    pub(crate) kind: Kind,
    /// The codec, or the compressor with its level.
    pub(crate) codec: String,
    /// Number of the run, from 1.
    pub(crate) repetition: u32,
    /// Launches of a run.
    pub(crate) launches: u32,
    /// Runs whose mean the times are.
    pub(crate) averaged: u32,
    /// Events of the whole trace; 0 if untraced.
    pub(crate) events: u64,
    /// Bytes that were compressed, five an event: of a compressor perhaps only the beginning of the trace.
    pub(crate) raw_bytes: u64,
    /// What became of them.
    pub(crate) bytes: u64,
    /// The trace's file.
    pub(crate) file_bytes: u64,
    /// Allocating and giving back device memory.
    pub(crate) setup_s: f64,
    /// All kernels of the program; the compressor's time.
    pub(crate) kernel_s: f64,
    /// The kernels that encode what these have left.
    pub(crate) encoding_s: f64,
    /// Copying the trace from the device.
    pub(crate) copy_s: f64,
    /// Sorting, compressing and writing the trace.
    pub(crate) write_s: f64,
    /// The program without set-up; the compressor's time.
    pub(crate) whole_s: f64,
}

impl BenchRow {
    /// Bytes of the whole raw trace.
    pub(crate) fn trace_bytes(&self) -> u64 {
        self.events.saturating_mul(u64::from(RAW_EVENT_BYTES))
    }

    /// Whether only the beginning of the trace was compressed.
    pub(crate) fn is_prefix(&self) -> bool {
        self.raw_bytes < self.trace_bytes()
    }

    /// The program's kernels and those that encode.
    pub(crate) fn kernels_s(&self) -> f64 {
        self.kernel_s + self.encoding_s
    }

    /// How many times smaller it became; NaN for an untraced run.
    pub(crate) fn ratio(&self) -> f64 {
        self.raw_bytes as f64 / self.bytes as f64
    }
}
