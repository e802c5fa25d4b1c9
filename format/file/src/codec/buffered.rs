//! Encoding and decoding of whole streams and chunks in memory, for tests, benchmarks and tools.

use super::item::{Coalescer, Item};
use super::predict::encoder::MAX_PUSH_GROWTH;
use super::{
    CodecError, CodecSpec, EclDecoder, EclState, PredictDecoder, PredictState, RawDecoder, RawState,
};
use crate::event::Event;
use crate::memory::SliceMemory;

/// Decoder for chunks of one codec, with memory allocated once.
///
/// ```
/// use warptrace_format::Event;
/// use warptrace_format::codec::{CodecSpec, Decoder};
///
/// let mut events = Vec::new();
/// Decoder::new(CodecSpec::Raw).decode_into(&[3, 0, 1, 0, 0, 0], 1, &mut events)?;
/// assert_eq!(events, [Event { location: 3, mask: 1 }]);
/// # Ok::<(), warptrace_format::codec::CodecError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Decoder(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Raw(RawDecoder),
    Ecl(EclDecoder),
    Predict(PredictDecoder),
}

impl Decoder {
    /// Creates a decoder. Panics if [`CodecSpec::check`] fails. Opening a file checks its codecs.
    pub fn new(spec: CodecSpec) -> Self {
        Self(match spec {
            CodecSpec::Raw => Kind::Raw(RawDecoder::new()),
            CodecSpec::Ecl(params) => Kind::Ecl(EclDecoder::new(params)),
            CodecSpec::Predict(params) => Kind::Predict(PredictDecoder::new(params)),
        })
    }

    /// Decodes one chunk's payload and passes its `events` events to `sink` in order. On an error, events
    /// before the fault may already be in `sink`.
    pub fn decode(
        &mut self,
        payload: &[u8],
        events: u32,
        sink: &mut impl FnMut(Event),
    ) -> Result<(), CodecError> {
        match &mut self.0 {
            Kind::Raw(decoder) => decoder.decode(payload, events, sink),
            Kind::Ecl(decoder) => decoder.decode(payload, events, sink),
            Kind::Predict(decoder) => decoder.decode(payload, events, sink),
        }
    }

    /// Like [`decode`](Self::decode), but passes runs and cycles of events to `sink` as one item each, whose
    /// division may change between versions. For `predict` the cost depends on the compressed size. For the
    /// other codecs each event is decoded, and repetitions of up to 16 events are detected.
    pub fn decode_items(
        &mut self,
        payload: &[u8],
        events: u32,
        sink: &mut impl FnMut(Item<'_>),
    ) -> Result<(), CodecError> {
        if let Kind::Predict(decoder) = &mut self.0 {
            return decoder.decode_items(payload, events, sink);
        }
        let mut coalescer = Coalescer::new();
        let result = self.decode(payload, events, &mut |event| coalescer.push(event, sink));
        coalescer.finish(sink);
        result
    }

    /// Like [`decode`](Self::decode), but accepts location 0 and mask 0, for streams of other tracers.
    pub fn decode_any(
        &mut self,
        payload: &[u8],
        events: u32,
        sink: &mut impl FnMut(Event),
    ) -> Result<(), CodecError> {
        match &mut self.0 {
            Kind::Raw(decoder) => decoder.decode_any(payload, events, sink),
            Kind::Ecl(decoder) => decoder.decode_any(payload, events, sink),
            Kind::Predict(decoder) => decoder.decode_any(payload, events, sink),
        }
    }

    /// Appends the events of one chunk's payload to `to`. Leaves `to` unchanged on an error.
    pub fn decode_into(
        &mut self,
        payload: &[u8],
        events: u32,
        to: &mut Vec<Event>,
    ) -> Result<(), CodecError> {
        let before = to.len();
        let result = match &mut self.0 {
            Kind::Predict(decoder) => decoder.decode_into(payload, events, to),
            _ => self.decode(payload, events, &mut |event| to.push(event)),
        };
        if result.is_err() {
            to.truncate(before);
        }
        result
    }
}

/// Encodes a stream into chunks of at most `chunk_capacity` payload bytes, like a warp. Returns the number of
/// events and the payload of each chunk. Panics if `chunk_capacity` cannot hold one event (16 bytes are
/// always enough), an event's location exceeds [`CodecSpec::max_location`], or [`CodecSpec::check`] fails.
pub fn encode_stream(spec: CodecSpec, events: &[Event], chunk_capacity: u32) -> Vec<(u32, Vec<u8>)> {
    spec.check().expect("a codec with valid parameters");
    for (number, event) in events.iter().enumerate() {
        assert!(
            event.location <= spec.max_location(),
            "event {number} has location {}; {} carries at most {}",
            event.location,
            spec.name(),
            spec.max_location()
        );
    }
    // The largest growth of all codecs: `predict` writes whole words.
    let max_bytes = events.len().saturating_mul(MAX_PUSH_GROWTH as usize);
    let mut out = vec![0; max_bytes.min(chunk_capacity as usize)];
    let mut out = SliceMemory(&mut out);
    let mut work = vec![0; spec.work_bytes() as usize];
    let mut work = SliceMemory(&mut work);
    let mut chunks = Vec::new();
    let mut rest = events;
    while !rest.is_empty() {
        let (taken, length) = match spec {
            CodecSpec::Raw => {
                let mut state = RawState::new();
                state.begin_chunk();
                let mut taken = 0;
                while taken < rest.len() && state.has_room(chunk_capacity) {
                    state.push(&mut out, rest[taken]);
                    taken += 1;
                }
                (taken, state.finish_chunk())
            }
            CodecSpec::Ecl(params) => {
                let mut state = EclState::new();
                state.begin_chunk(&params, &mut work);
                let mut taken = 0;
                while taken < rest.len() && state.has_room(chunk_capacity) {
                    state.push(&params, &mut work, &mut out, rest[taken]);
                    taken += 1;
                }
                (taken, state.finish_chunk(&params, &mut work, &mut out))
            }
            CodecSpec::Predict(params) => {
                let mut state = PredictState::new();
                state.begin_chunk(&params, &mut work);
                let mut taken = 0;
                while taken < rest.len() && state.has_room(chunk_capacity) {
                    state.push(&params, &mut work, &mut out, rest[taken]);
                    taken += 1;
                }
                (taken, state.finish_chunk(&params, &mut work, &mut out))
            }
        };
        assert!(taken > 0, "a chunk of {chunk_capacity} bytes cannot hold one event of {}", spec.name());
        chunks.push((taken as u32, out.0[..length as usize].to_vec()));
        rest = &rest[taken..];
    }
    chunks
}

/// Decodes one chunk with a new decoder. Panics and fails like [`Decoder::new`] and [`Decoder::decode`].
pub fn decode_chunk(spec: CodecSpec, payload: &[u8], events: u32) -> Result<Vec<Event>, CodecError> {
    let mut decoded = Vec::new();
    Decoder::new(spec).decode_into(payload, events, &mut decoded)?;
    Ok(decoded)
}
