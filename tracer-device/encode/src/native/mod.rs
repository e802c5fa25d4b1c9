//! Merging and encoding on the host.
//!
//! The same as the kernels, without lanes: it makes the same stretches, bytes, sequence numbers and accounts.
//! Only which chunk of the pool a stream is given may differ, and, where the pool is too small for all, which
//! streams wait for another round.

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

/// In which order streams are encoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Schedule {
    /// One after the other, on the calling thread: a pool too small then loses the same events each time.
    Sequential,
    /// Several at a time, on rayon's current pool.
    #[default]
    Parallel,
}

/// Merges the logs of launches that have ended, and encodes them into chunks of the pool: track 0 with
/// `codec`, track 1 with `raw`, that of addresses and values as it is; where classes were found
/// ([`find_classes`]), the stream that stands for each class. Adds to the accounts, and marks each warp as finished of
/// which nothing is left. Returns what has been claimed.
///
/// If [`Claims::waiting`] is not 0, something is left for another round: when the chunks have been collected
/// and all claims but those of logs are 0 again, this is to be called again with the same launches. What was
/// recorded of a stream before is a beginning of it, as long as its account says; nothing is recorded twice.
/// The merged runs are put into log memory, as on a device, so nothing is allocated but 8 bytes for each
/// entry of a stream, for one stream a thread.
///
/// # Safety
/// The addresses in `pool` and `launches` are host addresses of initialised memory of the sizes that they
/// imply: chunks, claims, log memory up to `merged_end`, classes, and the accounts of each launch. They do not
/// overlap, and nothing else touches them before this returns. (What the memory holds does not matter:
/// damaged logs give events that never were, but lead nowhere else.)
///
/// # Errors
/// If a descriptor contradicts itself or another, or the codec's parameters are out of range. Nothing is
/// encoded then.
pub unsafe fn encode(
    pool: &PoolDescriptor,
    launches: &[LoggedLaunch],
    codec: CodecSpec,
    schedule: Schedule,
) -> Result<Claims, EncodeError> {
    codec.check()?;
    // SAFETY: the caller's promise.
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
    // SAFETY: it is called once.
    unsafe { memory.for_each_stream(schedule == Schedule::Parallel, || State::new(codec), task) };
    // SAFETY: all tasks are over.
    Ok(unsafe { memory.claims() })
}

/// A run that waits to be encoded: mask, location, count, and the time at which it began.
pub type RunWords = [u32; 4];

/// Returns the run of a log entry.
pub const fn run(entry: Entry) -> RunWords {
    merged_words(entry)
}

/// Encodes runs into payloads of chunks, each from a fresh state.
pub struct ChunkEncoder {
    state: State,
    /// Bytes of each run's time in the trace's chunks.
    time_bytes: u32,
}

impl ChunkEncoder {
    /// An encoder of track 0 with `codec`, and of other tracks with `raw`; with `times` of when runs of track
    /// 0 began.
    ///
    /// # Errors
    /// If the codec's parameters are out of range, or it is not known.
    pub fn new(codec: CodecSpec, times: bool) -> Result<Self, EncodeError> {
        codec.check()?;
        Codec::new(codec).ok_or(EncodeError::UnknownCodec { name: codec.name() })?;
        Ok(Self { state: State::new(codec), time_bytes: if times { TIME_BYTES } else { 0 } })
    }

    /// Encodes as many of the runs, in their order, as `payload` has room for. Of the run behind them some
    /// events may be in it as well: its count is then what remains. A payload of the smallest chunk has room
    /// for something of any run.
    pub fn fill(&mut self, track: u32, runs: &mut [RunWords], payload: &mut [u8]) -> Filled {
        let time_bytes = if track == 0 { self.time_bytes } else { 0 };
        self.state.fill(track, runs, payload, time_bytes)
    }
}

/// What a thread keeps from stream to stream.
struct State {
    scratch: Scratch,
    trace: Trace,
    raw: Tables,
}

/// The encoder of the trace.
enum Trace {
    Raw,
    Ecl(EclParams, Tables),
    Predict(PredictParams, Tables),
}

impl State {
    /// Encodes as many runs of a track as a payload has room for.
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
