//! Codecs as a warp's stream uses them, and the size of a warp's state.

#[cfg(not(target_arch = "nvptx64"))]
use warptrace_format::codec::CodecSpec;
use warptrace_format::codec::ecl::EclState;
use warptrace_format::codec::predict::PredictState;
use warptrace_format::codec::raw::RawState;
use warptrace_format::codec::{EclParams, PredictParams};
use warptrace_format::{Event, Memory};

use crate::merge::RUN_BYTES;
use crate::space::GlobalMemory;

/// Parameters of `ecl` in compiled kernels. Constants there, so that shifts and masks cost nothing.
pub const DEVICE_ECL: EclParams = EclParams::DEFAULT;
/// Parameters of `predict` in compiled kernels.
pub const DEVICE_PREDICT: PredictParams = PredictParams::DEFAULT;

/// Bytes of a track before its codec's words; see `stream`.
pub(crate) const TRACK_HEADER_BYTES: u32 = 48;
const ECL_TRACK_BYTES: u32 = TRACK_HEADER_BYTES + round_up_16(4 * EclState::WORDS as u32);
const PREDICT_TRACK_BYTES: u32 = TRACK_HEADER_BYTES + round_up_16(4 * PredictState::WORDS as u32);
const RAW_TRACK_BYTES: u32 = TRACK_HEADER_BYTES + round_up_16(4 * RawState::WORDS as u32);
/// Bytes of any track.
pub(crate) const TRACK_BYTES: u32 = ECL_TRACK_BYTES;
const _: () = assert!(ECL_TRACK_BYTES >= PREDICT_TRACK_BYTES && ECL_TRACK_BYTES >= RAW_TRACK_BYTES);

/// Bytes that each thread needs in shared memory that encodes stretches alone; see `after`.
pub const fn encoding_bytes(codec: Codec) -> u32 {
    // Of two neighbours the same words lie in different banks.
    (TRACK_BYTES + round_up_16(codec.table_bytes())) | 16
}

const fn round_up_16(bytes: u32) -> u32 {
    bytes.div_ceil(16) * 16
}

/// The codecs that kernels record with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// Five bytes an event.
    Raw,
    /// CUT, LZa2, RLE.
    Ecl,
    /// Whole events predicted.
    Predict,
}

impl Codec {
    /// Bytes of the encoder's tables in a compiled kernel.
    pub(crate) const fn table_bytes(self) -> u32 {
        match self {
            Self::Raw => 0,
            Self::Ecl => DEVICE_ECL.work_bytes(),
            Self::Predict => DEVICE_PREDICT.work_bytes(),
        }
    }
}

/// An encoder's tables and parameters (which are constants on the device).
#[derive(Clone, Copy)]
pub(crate) struct Tables<M> {
    pub(crate) memory: M,
    #[cfg(not(target_arch = "nvptx64"))]
    pub(crate) codec: CodecSpec,
}

impl<M> Tables<M> {
    /// Tables in `memory` for what this launch records.
    #[inline(always)]
    pub(crate) fn new(memory: M) -> Self {
        Self {
            memory,
            #[cfg(not(target_arch = "nvptx64"))]
            codec: crate::simt::host::with_lane(|lane| lane.recording().codec),
        }
    }

    #[inline(always)]
    fn ecl(&self) -> EclParams {
        #[cfg(not(target_arch = "nvptx64"))]
        if let CodecSpec::Ecl(params) = self.codec {
            return params;
        }
        DEVICE_ECL
    }

    #[inline(always)]
    pub(crate) fn predict(&self) -> PredictParams {
        #[cfg(not(target_arch = "nvptx64"))]
        if let CodecSpec::Predict(params) = self.codec {
            return params;
        }
        DEVICE_PREDICT
    }
}

/// What [`Recorder::push_runs`] has encoded.
#[derive(Clone, Copy)]
pub(crate) struct Pushed {
    pub(crate) runs: u32,
    pub(crate) events: u64,
}

/// Encodes runs one after the other. `push` answers how often it has encoded an event, or `None` if there was no room.
#[inline(always)]
fn push_one_by_one(
    mut log: GlobalMemory,
    runs: u32,
    mut push: impl FnMut(Event, u32) -> Option<u32>,
) -> Pushed {
    let mut pushed = Pushed { runs: 0, events: 0 };
    // Two are on their way while one is encoded, which takes less time than a read. Behind the last one, what is there is read in vain.
    let read =
        |log: &GlobalMemory, number: u32| log.get128(RUN_BYTES * if number < runs { number } else { 0 });
    let (mut next, mut after) = (read(&log, 0), read(&log, 1));
    while pushed.runs < runs {
        let [mask, location, count, _] = next;
        next = after;
        after = read(&log, pushed.runs + 2);
        let Some(taken) = push(Event { location: location as u16, mask }, count) else { break };
        pushed.events += u64::from(taken);
        if taken != count {
            log.set32(RUN_BYTES * pushed.runs + 8, count - taken);
            break;
        }
        pushed.runs += 1;
    }
    pushed
}

/// A codec's encoder: words in the warp's state, tables in work memory, output in a chunk's payload.
pub(crate) trait Recorder: Sized {
    /// The encoder before its first chunk.
    const FRESH: Self;
    /// Takes the encoder's words out of the warp's state.
    fn load(state: &impl Memory, at: u32) -> Self;
    /// Puts them back.
    fn store(&self, state: &mut impl Memory, at: u32);
    /// Makes tables with any content ready for the first chunk.
    fn ready<M: Memory + Copy>(_: Tables<M>) {}
    /// Starts a chunk from a fresh codec state.
    fn begin<M: Memory + Copy>(&mut self, tables: Tables<M>);
    /// Encodes the first of `runs` runs in `log`, as many as `capacity` bytes of payload have room for. If that is not all, some events of the
    /// next may be encoded all the same: its count is what is left.
    fn push_runs<M: Memory + Copy>(
        &mut self,
        tables: Tables<M>,
        payload: GlobalMemory,
        log: GlobalMemory,
        runs: u32,
        capacity: u32,
    ) -> Pushed;
    /// Flushes; answers the payload's length.
    fn finish<M: Memory + Copy>(&mut self, tables: Tables<M>, payload: &mut impl Memory) -> u32;
}

macro_rules! load_and_store {
    () => {
        const FRESH: Self = Self::new();
        #[inline(always)]
        fn load(state: &impl Memory, at: u32) -> Self {
            let mut words = [0; Self::WORDS];
            let mut i = 0;
            while i + 4 <= Self::WORDS {
                let four = state.get128(at + 4 * i as u32);
                (words[i], words[i + 1], words[i + 2], words[i + 3]) = (four[0], four[1], four[2], four[3]);
                i += 4;
            }
            Self::from_words(&words)
        }
        #[inline(always)]
        fn store(&self, state: &mut impl Memory, at: u32) {
            const { assert!(Self::WORDS % 4 == 0) };
            let words = self.to_words();
            let mut i = 0;
            while i + 4 <= Self::WORDS {
                state.set128(at + 4 * i as u32, [words[i], words[i + 1], words[i + 2], words[i + 3]]);
                i += 4;
            }
        }
    };
}

impl Recorder for EclState {
    load_and_store!();
    #[inline(always)]
    fn ready<M: Memory + Copy>(mut tables: Tables<M>) {
        Self::prepare(&tables.ecl(), &mut tables.memory);
    }
    #[inline(always)]
    fn begin<M: Memory + Copy>(&mut self, mut tables: Tables<M>) {
        self.begin_chunk(&tables.ecl(), &mut tables.memory);
    }
    #[inline(always)]
    fn push_runs<M: Memory + Copy>(
        &mut self,
        mut tables: Tables<M>,
        mut payload: GlobalMemory,
        log: GlobalMemory,
        runs: u32,
        capacity: u32,
    ) -> Pushed {
        push_one_by_one(log, runs, |event, count| {
            self.has_room(capacity).then(|| {
                self.push_run(&tables.ecl(), &mut tables.memory, &mut payload, event, count, capacity)
            })
        })
    }
    #[inline(always)]
    fn finish<M: Memory + Copy>(&mut self, mut tables: Tables<M>, payload: &mut impl Memory) -> u32 {
        self.finish_chunk(&tables.ecl(), &mut tables.memory, payload)
    }
}

impl Recorder for PredictState {
    load_and_store!();
    #[inline(always)]
    fn begin<M: Memory + Copy>(&mut self, mut tables: Tables<M>) {
        self.begin_chunk(&tables.predict(), &mut tables.memory);
    }
    #[inline(always)]
    fn push_runs<M: Memory + Copy>(
        &mut self,
        mut tables: Tables<M>,
        mut payload: GlobalMemory,
        log: GlobalMemory,
        runs: u32,
        capacity: u32,
    ) -> Pushed {
        push_one_by_one(log, runs, |event, count| {
            self.has_room(capacity)
                .then(|| self.push_run(&tables.predict(), &mut tables.memory, &mut payload, event, count))
        })
    }
    #[inline(always)]
    fn finish<M: Memory + Copy>(&mut self, mut tables: Tables<M>, payload: &mut impl Memory) -> u32 {
        self.finish_chunk(&tables.predict(), &mut tables.memory, payload)
    }
}

impl Recorder for RawState {
    load_and_store!();
    #[inline(always)]
    fn begin<M: Memory + Copy>(&mut self, _: Tables<M>) {
        self.begin_chunk();
    }
    #[inline(always)]
    fn push_runs<M: Memory + Copy>(
        &mut self,
        _: Tables<M>,
        mut payload: GlobalMemory,
        log: GlobalMemory,
        runs: u32,
        capacity: u32,
    ) -> Pushed {
        push_one_by_one(log, runs, |event, count| {
            self.has_room(capacity).then(|| self.push_run(&mut payload, event, count, capacity))
        })
    }
    #[inline(always)]
    fn finish<M: Memory + Copy>(&mut self, _: Tables<M>, _: &mut impl Memory) -> u32 {
        self.finish_chunk()
    }
}
