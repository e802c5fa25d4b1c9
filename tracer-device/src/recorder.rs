//! Codecs as a warp's stream uses them, and the size of a warp's state.

#[cfg(not(target_arch = "nvptx64"))]
use warptrace_format::codec::CodecSpec;
use warptrace_format::codec::ecl::EclState;
use warptrace_format::codec::predict::PredictState;
use warptrace_format::codec::raw::RawState;
use warptrace_format::codec::{EclParams, PredictParams};
use warptrace_format::{Event, Memory};

use crate::late::LATE_TABLE_BYTES;
use crate::lock::LOCK_BYTES;
use crate::mail::MAIL_BYTES;
use crate::queue::QUEUE_BYTES;
use crate::simt::WARP_LANES;
use crate::space;

/// Parameters of `ecl` in compiled kernels. Constants there, so that shifts and masks cost nothing.
pub const DEVICE_ECL: EclParams = EclParams::DEFAULT;
/// Parameters of `predict` in compiled kernels.
pub const DEVICE_PREDICT: PredictParams = PredictParams::DEFAULT;

/// Bytes of a track before its codec's words; see `stream`.
pub(crate) const TRACK_HEADER_BYTES: u32 = 48;
/// Bytes of a warp's state before its first track; see `state`.
pub(crate) const WARP_HEADER_BYTES: u32 =
    64 + LOCK_BYTES + 16 + 4 * WARP_LANES + 4 * ENTRIES + MAIL_BYTES + QUEUE_BYTES + LATE_TABLE_BYTES;
/// Locations below this have an entry of their own in the warp's state; see `state`.
pub(crate) const ENTRIES: u32 = 32;
const ECL_TRACK_BYTES: u32 = TRACK_HEADER_BYTES + round_up_16(4 * EclState::WORDS as u32);
const PREDICT_TRACK_BYTES: u32 = TRACK_HEADER_BYTES + round_up_16(4 * PredictState::WORDS as u32);
const RAW_TRACK_BYTES: u32 = TRACK_HEADER_BYTES + round_up_16(4 * RawState::WORDS as u32);

/// Where the track with the raw twin starts.
const DUAL_TRACK_AT: u32 = WARP_HEADER_BYTES + ECL_TRACK_BYTES;
/// Where it stands how many events were taken out of the raw twin's queue.
pub(crate) const TWIN_TAKEN: u32 = DUAL_TRACK_AT + RAW_TRACK_BYTES;
/// Where the queue of the raw twin starts.
pub(crate) const DUAL_QUEUE_AT: u32 = TWIN_TAKEN + 16;

/// Offset of a track in the warp's state.
#[inline(always)]
pub(crate) const fn track_at(number: u32) -> u32 {
    if number == 0 { WARP_HEADER_BYTES } else { DUAL_TRACK_AT }
}

/// Bytes of the lanes' places at the end of a counted loop (see `loops`).
const COUNTS_BYTES: u32 = 16 * WARP_LANES;

/// Bytes of one warp's state in a kernel compiled for this codec, its tables (if they are in shared memory) included.
///
/// `counted`: with room for the lanes' counts of a loop. A traced launch needs so many bytes for each warp of a block at the end
/// of its dynamic shared memory.
pub const fn warp_state_bytes(codec: Codec, dual: bool, shared_tables: bool, counted: bool) -> u32 {
    let track = match codec {
        Codec::Raw => RAW_TRACK_BYTES,
        Codec::Ecl => ECL_TRACK_BYTES,
        Codec::Predict => PREDICT_TRACK_BYTES,
    };
    let state = if dual { DUAL_QUEUE_AT + QUEUE_BYTES } else { WARP_HEADER_BYTES + track };
    let tables = if shared_tables { codec.table_bytes() } else { 0 };
    state + tables + if counted { COUNTS_BYTES } else { 0 }
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

/// Where the encoder's tables are: in shared memory if the kernel was compiled so, else in global memory.
#[cfg(all(target_arch = "nvptx64", feature = "work-shared"))]
type WorkMemory = space::SharedMemory;
#[cfg(not(all(target_arch = "nvptx64", feature = "work-shared")))]
type WorkMemory = space::GlobalMemory;

/// An encoder's tables and parameters (which are constants on the device).
#[derive(Clone, Copy)]
pub(crate) struct Tables {
    /// Where the tables are; in shared memory the low half counts.
    pub(crate) address: u64,
    /// Whether this lane's writes count.
    pub(crate) leader: bool,
    #[cfg(not(target_arch = "nvptx64"))]
    pub(crate) codec: CodecSpec,
}

impl Tables {
    /// For a codec without tables.
    #[inline(always)]
    pub(crate) const fn none(leader: bool) -> Self {
        Self {
            address: 0,
            leader,
            #[cfg(not(target_arch = "nvptx64"))]
            codec: CodecSpec::Raw,
        }
    }

    #[inline(always)]
    fn memory(self) -> WorkMemory {
        #[cfg(all(target_arch = "nvptx64", feature = "work-shared"))]
        {
            space::SharedMemory::new(self.address as u32, self.leader)
        }
        #[cfg(not(all(target_arch = "nvptx64", feature = "work-shared")))]
        space::GlobalMemory::new(self.address, self.leader)
    }

    #[inline(always)]
    fn ecl(self) -> EclParams {
        #[cfg(not(target_arch = "nvptx64"))]
        if let CodecSpec::Ecl(params) = self.codec {
            return params;
        }
        DEVICE_ECL
    }

    #[inline(always)]
    fn predict(self) -> PredictParams {
        #[cfg(not(target_arch = "nvptx64"))]
        if let CodecSpec::Predict(params) = self.codec {
            return params;
        }
        DEVICE_PREDICT
    }
}

/// A codec's encoder: words in the warp's state, tables in work memory, output in a chunk's payload.
pub(crate) trait Recorder: Sized {
    /// The encoder before its first chunk.
    const FRESH: Self;
    /// Takes the encoder's words out of the warp's state.
    fn load(state: &impl Memory, at: u32) -> Self;
    /// Puts them back.
    fn store(&self, state: &mut impl Memory, at: u32);
    /// Starts a chunk from a fresh codec state. `zeroed`: the tables are all zero.
    fn begin(&mut self, tables: Tables, zeroed: bool);
    /// Whether one more event and the flush are sure to fit into `capacity` bytes.
    fn has_room(&self, capacity: u32) -> bool;
    /// Encodes `event` up to `count` times, at least once; answers how often.
    fn push_run(
        &mut self,
        tables: Tables,
        payload: &mut impl Memory,
        event: Event,
        count: u32,
        capacity: u32,
    ) -> u32;
    /// Flushes; answers the payload's length.
    fn finish(&mut self, tables: Tables, payload: &mut impl Memory) -> u32;
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
        #[inline(always)]
        fn has_room(&self, capacity: u32) -> bool {
            Self::has_room(self, capacity)
        }
    };
}

impl Recorder for EclState {
    load_and_store!();
    #[inline(always)]
    fn begin(&mut self, tables: Tables, _: bool) {
        self.begin_chunk(&tables.ecl(), &mut tables.memory());
    }
    #[inline(always)]
    fn push_run(
        &mut self,
        tables: Tables,
        payload: &mut impl Memory,
        event: Event,
        count: u32,
        capacity: u32,
    ) -> u32 {
        Self::push_run(self, &tables.ecl(), &mut tables.memory(), payload, event, count, capacity)
    }
    #[inline(always)]
    fn finish(&mut self, tables: Tables, payload: &mut impl Memory) -> u32 {
        self.finish_chunk(&tables.ecl(), &mut tables.memory(), payload)
    }
}

impl Recorder for PredictState {
    load_and_store!();
    #[inline(always)]
    fn begin(&mut self, tables: Tables, zeroed: bool) {
        if zeroed {
            self.begin_chunk_in_zeroes(&tables.predict(), &mut tables.memory());
        } else {
            self.begin_chunk(&tables.predict(), &mut tables.memory());
        }
    }
    #[inline(always)]
    fn push_run(
        &mut self,
        tables: Tables,
        payload: &mut impl Memory,
        event: Event,
        count: u32,
        _: u32,
    ) -> u32 {
        Self::push_run(self, &tables.predict(), &mut tables.memory(), payload, event, count)
    }
    #[inline(always)]
    fn finish(&mut self, tables: Tables, payload: &mut impl Memory) -> u32 {
        self.finish_chunk(&tables.predict(), &mut tables.memory(), payload)
    }
}

impl Recorder for RawState {
    load_and_store!();
    #[inline(always)]
    fn begin(&mut self, _: Tables, _: bool) {
        self.begin_chunk();
    }
    #[inline(always)]
    fn push_run(
        &mut self,
        _: Tables,
        payload: &mut impl Memory,
        event: Event,
        count: u32,
        capacity: u32,
    ) -> u32 {
        Self::push_run(self, payload, event, count, capacity)
    }
    #[inline(always)]
    fn finish(&mut self, _: Tables, _: &mut impl Memory) -> u32 {
        self.finish_chunk()
    }
}
