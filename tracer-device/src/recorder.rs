//! Codecs as a warp's stream uses them, and the size of a warp's state.

use warptrace_format::codec::EclParams;
use warptrace_format::codec::ecl::EclState;
use warptrace_format::codec::raw::RawState;
use warptrace_format::{Event, Memory};

use crate::space;

/// Parameters of `ecl` in compiled kernels. Constants there, so that shifts and masks cost nothing.
pub const DEVICE_ECL: EclParams = EclParams::DEFAULT;

/// Bytes of a track before its codec's words; see `stream`.
pub(crate) const TRACK_HEADER_BYTES: u32 = 48;
/// Bytes of a warp's state before its first track; see `warp`.
pub(crate) const WARP_HEADER_BYTES: u32 = 32 + crate::lock::LOCK_BYTES;
const ECL_TRACK_BYTES: u32 = TRACK_HEADER_BYTES + round_up_16(4 * EclState::WORDS as u32);
const RAW_TRACK_BYTES: u32 = TRACK_HEADER_BYTES + round_up_16(4 * RawState::WORDS as u32);

/// Where the track with the raw twin starts.
const DUAL_TRACK_AT: u32 = WARP_HEADER_BYTES + ECL_TRACK_BYTES;

/// Offset of a track in the warp's state.
#[inline(always)]
pub(crate) const fn track_at(number: u32) -> u32 {
    if number == 0 { WARP_HEADER_BYTES } else { DUAL_TRACK_AT }
}

/// Bytes of shared memory that hold one warp's state.
pub const WARP_STATE_BYTES: u32 = if cfg!(any(not(target_arch = "nvptx64"), feature = "dual")) {
    DUAL_TRACK_AT + RAW_TRACK_BYTES
} else if cfg!(feature = "codec-ecl") {
    WARP_HEADER_BYTES + ECL_TRACK_BYTES
} else {
    WARP_HEADER_BYTES + RAW_TRACK_BYTES
};

const fn round_up_16(bytes: u32) -> u32 {
    bytes.div_ceil(16) * 16
}

/// Where the encoder's tables are: in shared memory if the kernel was compiled so, else in global memory.
#[cfg(all(target_arch = "nvptx64", feature = "work-shared"))]
type WorkMemory = space::SharedMemory;
#[cfg(not(all(target_arch = "nvptx64", feature = "work-shared")))]
type WorkMemory = space::GlobalMemory;

/// An encoder's tables and parameters (which are constants on the device).
#[derive(Clone, Copy)]
pub(crate) struct Tables {
    pub(crate) address: u64,
    /// Whether this lane's writes count.
    pub(crate) leader: bool,
    #[cfg(not(target_arch = "nvptx64"))]
    pub(crate) params: EclParams,
}

impl Tables {
    /// For a codec without tables.
    pub(crate) const fn none(leader: bool) -> Self {
        Self {
            address: 0,
            leader,
            #[cfg(not(target_arch = "nvptx64"))]
            params: EclParams::DEFAULT,
        }
    }

    #[inline(always)]
    fn memory(self) -> WorkMemory {
        #[cfg(all(target_arch = "nvptx64", feature = "work-shared"))]
        {
            space::SharedMemory::new(self.address, self.leader)
        }
        #[cfg(not(all(target_arch = "nvptx64", feature = "work-shared")))]
        space::GlobalMemory::new(self.address, self.leader)
    }

    #[inline(always)]
    fn params(self) -> EclParams {
        #[cfg(target_arch = "nvptx64")]
        {
            DEVICE_ECL
        }
        #[cfg(not(target_arch = "nvptx64"))]
        self.params
    }
}

/// A codec's encoder: words in the warp's state, tables in work memory, output in a chunk's payload.
pub(crate) trait Recorder: Sized {
    /// Takes the encoder's words out of the warp's state.
    fn load(state: &impl Memory, at: u32) -> Self;
    /// Puts them back.
    fn store(&self, state: &mut impl Memory, at: u32);
    /// Starts a chunk from a fresh codec state.
    fn begin(&mut self, tables: Tables);
    /// Whether one more event and the flush are sure to fit into `capacity` bytes.
    fn has_room(&self, capacity: u32) -> bool;
    /// Encodes one event.
    fn push(&mut self, tables: Tables, payload: &mut impl Memory, event: Event);
    /// Flushes; answers the payload's length.
    fn finish(&mut self, tables: Tables, payload: &mut impl Memory) -> u32;
}

macro_rules! load_and_store {
    () => {
        #[inline(always)]
        fn load(state: &impl Memory, at: u32) -> Self {
            let mut words = [0; Self::WORDS];
            let mut i = 0;
            while i + 4 <= Self::WORDS {
                let four = state.get128(at + 4 * i as u32);
                (words[i], words[i + 1], words[i + 2], words[i + 3]) = (four[0], four[1], four[2], four[3]);
                i += 4;
            }
            while i < Self::WORDS {
                words[i] = state.get32(at + 4 * i as u32);
                i += 1;
            }
            Self::from_words(&words)
        }
        #[inline(always)]
        fn store(&self, state: &mut impl Memory, at: u32) {
            let words = self.to_words();
            let mut i = 0;
            while i + 4 <= Self::WORDS {
                state.set128(at + 4 * i as u32, [words[i], words[i + 1], words[i + 2], words[i + 3]]);
                i += 4;
            }
            while i < Self::WORDS {
                state.set32(at + 4 * i as u32, words[i]);
                i += 1;
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
    fn begin(&mut self, tables: Tables) {
        self.begin_chunk(&tables.params(), &mut tables.memory());
    }
    #[inline(always)]
    fn push(&mut self, tables: Tables, payload: &mut impl Memory, event: Event) {
        Self::push(self, &tables.params(), &mut tables.memory(), payload, event);
    }
    #[inline(always)]
    fn finish(&mut self, tables: Tables, payload: &mut impl Memory) -> u32 {
        self.finish_chunk(&tables.params(), &mut tables.memory(), payload)
    }
}

impl Recorder for RawState {
    load_and_store!();
    #[inline(always)]
    fn begin(&mut self, _: Tables) {
        self.begin_chunk();
    }
    #[inline(always)]
    fn push(&mut self, _: Tables, payload: &mut impl Memory, event: Event) {
        Self::push(self, payload, event);
    }
    #[inline(always)]
    fn finish(&mut self, _: Tables, _: &mut impl Memory) -> u32 {
        self.finish_chunk()
    }
}
