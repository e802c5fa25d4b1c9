//! The codecs' encoders behind one trait: state words that a thread keeps, tables, and a chunk's payload.

use warptrace_format::codec::ecl::EclState;
use warptrace_format::codec::predict::PredictState;
use warptrace_format::codec::raw::RawState;
use warptrace_format::codec::{EclParams, PredictParams};
use warptrace_format::{Event, Memory};

use crate::chunks::Waiting;

/// A codec's encoder. `tables` holds its tables, and `payload` its output.
pub(crate) trait Encoder: Sized {
    type Params: Copy;
    /// Marks the stretches that wait for this encoder, with one thread each.
    const WAITING: Waiting;
    /// Words of the encoder's state, a multiple of four.
    const STATE_WORDS: usize;
    /// The state before the first chunk.
    const FRESH: Self;
    fn table_bytes(params: Self::Params) -> u32;
    fn load(state: &impl Memory, at: u32) -> Self;
    fn store(&self, state: &mut impl Memory, at: u32);
    /// Initializes tables with arbitrary content.
    fn prepare(_: Self::Params, _: &mut impl Memory) {}
    /// Starts a chunk from a fresh codec state.
    fn begin(&mut self, params: Self::Params, tables: &mut impl Memory);
    /// Encodes `event` up to `count` times in `capacity` bytes. Returns how often, or 0 for a full chunk.
    fn push(
        &mut self,
        params: Self::Params,
        tables: &mut impl Memory,
        payload: &mut impl Memory,
        event: Event,
        count: u32,
        capacity: u32,
    ) -> u32;
    /// Ends the chunk and returns the length of its payload in bytes.
    fn finish(&mut self, params: Self::Params, tables: &mut impl Memory, payload: &mut impl Memory) -> u32;
}

macro_rules! load_and_store {
    () => {
        const STATE_WORDS: usize = Self::WORDS;
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

impl Encoder for EclState {
    type Params = EclParams;
    const WAITING: Waiting = Waiting::EclSerial;
    load_and_store!();
    #[inline(always)]
    fn table_bytes(params: EclParams) -> u32 {
        params.work_bytes()
    }
    #[inline(always)]
    fn prepare(params: EclParams, tables: &mut impl Memory) {
        Self::prepare(&params, tables);
    }
    #[inline(always)]
    fn begin(&mut self, params: EclParams, tables: &mut impl Memory) {
        self.begin_chunk(&params, tables);
    }
    #[inline(always)]
    fn push(
        &mut self,
        params: EclParams,
        tables: &mut impl Memory,
        payload: &mut impl Memory,
        event: Event,
        count: u32,
        capacity: u32,
    ) -> u32 {
        if self.has_room(capacity) {
            self.push_run(&params, tables, payload, event, count, capacity)
        } else {
            0
        }
    }
    #[inline(always)]
    fn finish(&mut self, params: EclParams, tables: &mut impl Memory, payload: &mut impl Memory) -> u32 {
        self.finish_chunk(&params, tables, payload)
    }
}

impl Encoder for PredictState {
    type Params = PredictParams;
    const WAITING: Waiting = Waiting::PredictSerial;
    load_and_store!();
    #[inline(always)]
    fn table_bytes(params: PredictParams) -> u32 {
        params.work_bytes()
    }
    #[inline(always)]
    fn begin(&mut self, params: PredictParams, tables: &mut impl Memory) {
        self.begin_chunk(&params, tables);
    }
    #[inline(always)]
    fn push(
        &mut self,
        params: PredictParams,
        tables: &mut impl Memory,
        payload: &mut impl Memory,
        event: Event,
        count: u32,
        capacity: u32,
    ) -> u32 {
        if self.has_room(capacity) { self.push_run(&params, tables, payload, event, count) } else { 0 }
    }
    #[inline(always)]
    fn finish(&mut self, params: PredictParams, tables: &mut impl Memory, payload: &mut impl Memory) -> u32 {
        self.finish_chunk(&params, tables, payload)
    }
}

impl Encoder for RawState {
    type Params = ();
    const WAITING: Waiting = Waiting::RawSerial;
    load_and_store!();
    #[inline(always)]
    fn table_bytes((): ()) -> u32 {
        0
    }
    #[inline(always)]
    fn begin(&mut self, (): (), _: &mut impl Memory) {
        self.begin_chunk();
    }
    #[inline(always)]
    fn push(
        &mut self,
        (): (),
        _: &mut impl Memory,
        payload: &mut impl Memory,
        event: Event,
        count: u32,
        capacity: u32,
    ) -> u32 {
        if self.has_room(capacity) { self.push_run(payload, event, count, capacity) } else { 0 }
    }
    #[inline(always)]
    fn finish(&mut self, (): (), _: &mut impl Memory, _: &mut impl Memory) -> u32 {
        self.finish_chunk()
    }
}
