//! Merging and encoding on the host.
//!
//! Produces the same stretches, bytes, sequence numbers and accounts as the kernels, without lanes. Only two
//! things may differ: which chunk of the pool a stream receives, and, if the pool is too small for all
//! streams, which of them wait for another round.

mod classes;
mod data;
mod encode;
mod error;
mod flatten;
mod memory;
mod merge;

use warptrace_abi::log::{Entry, LoggedLaunch};
use warptrace_abi::pool::{Claims, PoolDescriptor};
use warptrace_format::chunk::TIME_BYTES;
use warptrace_format::codec::ecl::EclState;
use warptrace_format::codec::predict::PredictState;
use warptrace_format::codec::raw::RawState;
use warptrace_format::codec::{CodecSpec, EclParams, PredictParams};

pub use self::classes::find_classes;
pub use self::encode::Filled;
pub use self::error::EncodeError;
pub use self::flatten::flatten;

use self::encode::Tables;
use self::memory::{DeviceMemory, Owned};
use self::merge::{Merging, Scratch};
use crate::chunks;
use crate::codec::Codec;
use crate::merged::merged_words;

/// Order in which streams are encoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Schedule {
    /// Sequential, on the calling thread. If the pool is too small, the same events are lost each time.
    Sequential,
    /// Parallel, on rayon's current pool.
    #[default]
    Parallel,
}

/// Merges the logs of launches that have ended, and encodes them into chunks of the pool. Encodes track 0
/// with `codec` and track 1 with `raw`, and copies the track of addresses and values unchanged. If classes
/// were found ([`find_classes`]), encodes one stream per class. Updates the accounts, and marks each warp as
/// finished when all of it is encoded. Returns the reserved amounts.
///
/// If [`Claims::waiting`] is not 0, some streams wait for another round: collect the chunks, reset all claims
/// except `log_entries` to 0, and call the function again with the same launches. The part of a stream that
/// is already recorded is a prefix, whose length is in its account. Nothing is recorded twice.
///
/// The merged runs are written to log memory, as on a device. The function allocates only 8 bytes per entry
/// of a stream, for one stream per thread.
///
/// # Safety
/// The addresses in `pool` and `launches` are host addresses of initialized memory of the sizes that they
/// imply: chunks, claims, log memory up to `merged_end`, classes, and the accounts of each launch. The
/// regions do not overlap, and nothing else accesses them before this returns. The content of the memory is
/// irrelevant: damaged logs produce wrong events, but no access outside these regions.
///
/// # Errors
/// If a descriptor is invalid or contradicts another, if the codec's parameters are out of range, or if the
/// codec is not supported. Nothing is encoded then.
pub unsafe fn encode(
    pool: &PoolDescriptor,
    launches: &[LoggedLaunch],
    codec: CodecSpec,
    schedule: Schedule,
) -> Result<Claims, EncodeError> {
    codec.check()?;
    // SAFETY: guaranteed by the caller.
    let memory = unsafe { DeviceMemory::new(pool, launches) }?;
    let of_trace = Codec::new(codec).ok_or(EncodeError::UnknownCodec { name: codec.name() })?;
    let task = |state: &mut State, owned: Owned<'_>| {
        let codec = of_trace.of_track(owned.name.track);
        if owned.account.finished != 0 || !memory.is_first(owned.name) {
            return;
        }
        if pool.is_data(owned.name.track) {
            return data::copy(&memory, owned);
        }
        let merged = match merge::merge(&memory, owned.name, codec, &mut state.scratch) {
            Merging::Nothing => return owned.account.finished = 1,
            Merging::Waits => return chunks::count_waiting(pool),
            Merging::Done(merged) => merged,
        };
        match (codec, &mut state.trace) {
            (Codec::Ecl, Trace::Ecl(params, tables)) => {
                encode::encode::<EclState>(&memory, owned, merged, codec, *params, tables);
            }
            (Codec::Predict, Trace::Predict(params, tables)) => {
                encode::encode::<PredictState>(&memory, owned, merged, codec, *params, tables);
            }
            _ => encode::encode::<RawState>(&memory, owned, merged, Codec::Raw, (), &mut state.raw),
        }
    };
    // SAFETY: called once.
    unsafe { memory.for_each_stream(schedule == Schedule::Parallel, || State::new(codec), task) };
    // SAFETY: all tasks have ended.
    Ok(unsafe { memory.claims() })
}

/// A run to encode: mask, location, count, and start time in units of 16 cycles.
pub type RunWords = [u32; 4];

/// Returns the run of a log entry.
pub const fn run(entry: Entry) -> RunWords {
    merged_words(entry)
}

/// Encodes runs into payloads of chunks, each from a fresh state.
pub struct ChunkEncoder {
    state: State,
    /// Bytes of each run's time on track 0.
    time_bytes: u32,
}

impl ChunkEncoder {
    /// Creates an encoder of track 0 with `codec`, and of other tracks with `raw`. With `times`, chunks of
    /// track 0 hold the start times of runs.
    ///
    /// # Errors
    /// If the codec's parameters are out of range, or the codec is not supported.
    pub fn new(codec: CodecSpec, times: bool) -> Result<Self, EncodeError> {
        codec.check()?;
        Codec::new(codec).ok_or(EncodeError::UnknownCodec { name: codec.name() })?;
        Ok(Self { state: State::new(codec), time_bytes: if times { TIME_BYTES } else { 0 } })
    }

    /// Encodes as many of the runs, in order, as `payload` has room for, and possibly part of the next, whose
    /// count it reduces. A payload of the smallest chunk has room for at least one event of any run.
    pub fn fill(&mut self, track: u32, runs: &mut [RunWords], payload: &mut [u8]) -> Filled {
        let time_bytes = if track == 0 { self.time_bytes } else { 0 };
        self.state.fill(track, runs, payload, time_bytes)
    }
}

/// Per-thread state, reused between streams.
struct State {
    scratch: Scratch,
    trace: Trace,
    raw: Tables,
}

enum Trace {
    Raw,
    Ecl(EclParams, Tables),
    Predict(PredictParams, Tables),
}

impl State {
    fn fill(&mut self, track: u32, runs: &mut [RunWords], payload: &mut [u8], time_bytes: u32) -> Filled {
        match &mut self.trace {
            Trace::Ecl(params, tables) if track == 0 => {
                encode::fill::<EclState>(*params, tables, runs, payload, time_bytes)
            }
            Trace::Predict(params, tables) if track == 0 => {
                encode::fill::<PredictState>(*params, tables, runs, payload, time_bytes)
            }
            _ => encode::fill::<RawState>((), &mut self.raw, runs, payload, time_bytes),
        }
    }

    fn new(codec: CodecSpec) -> Self {
        let trace = match codec {
            CodecSpec::Ecl(params) => Trace::Ecl(params, Tables::new::<EclState>(params)),
            CodecSpec::Predict(params) => Trace::Predict(params, Tables::new::<PredictState>(params)),
            _ => Trace::Raw,
        };
        Self { scratch: Scratch::default(), trace, raw: Tables::new::<RawState>(()) }
    }
}
