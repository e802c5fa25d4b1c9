//! Rows of the table of `bench`: one for each sample of a codec or run of a compressor.

use serde::Serialize;
use warptrace_format::RAW_EVENT_BYTES;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    #[default]
    Run,
    /// Another compressor on the raw trace.
    Compressor,
}

/// A row of the table. Times are in seconds.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct BenchRow {
    /// Date of the run (UTC).
    pub(crate) date: String,
    pub(crate) commit: String,
    pub(crate) machine: String,
    pub(crate) driver: String,
    /// `cuda` or `simulator`; times from the latter are not performance.
    pub(crate) device: String,
    pub(crate) program: String,
    pub(crate) input: String,
    /// Row of the thesis's Table A.1 for comparison, or empty.
    pub(crate) thesis: String,
    pub(crate) kind: Kind,
    /// Codec, or compressor with its level.
    pub(crate) codec: String,
    pub(crate) repetition: u32,
    pub(crate) launches: u32,
    /// Number of runs that the times are means of.
    pub(crate) averaged: u32,
    /// Events of the whole trace; 0 if untraced.
    pub(crate) events: u64,
    /// Uncompressed bytes, five per event. For a compressor, possibly only the start of the trace.
    pub(crate) raw_bytes: u64,
    /// Compressed bytes.
    pub(crate) bytes: u64,
    pub(crate) file_bytes: u64,
    /// Allocating and freeing device memory.
    pub(crate) setup_s: f64,
    /// All kernels of the program; for a compressor, its time.
    pub(crate) kernel_s: f64,
    pub(crate) encoding_s: f64,
    /// Copying the trace from the device.
    pub(crate) copy_s: f64,
    /// Sorting, compressing and writing the trace.
    pub(crate) write_s: f64,
    /// The program without set-up; for a compressor, its time.
    pub(crate) whole_s: f64,
}

impl BenchRow {
    /// Bytes of the whole raw trace.
    pub(crate) fn trace_bytes(&self) -> u64 {
        self.events.saturating_mul(u64::from(RAW_EVENT_BYTES))
    }

    /// Returns true if only the start of the trace was compressed.
    pub(crate) fn is_prefix(&self) -> bool {
        self.raw_bytes < self.trace_bytes()
    }

    pub(crate) fn kernels_s(&self) -> f64 {
        self.kernel_s + self.encoding_s
    }

    /// Compression ratio; NaN for an untraced run.
    pub(crate) fn ratio(&self) -> f64 {
        self.raw_bytes as f64 / self.bytes as f64
    }
}
