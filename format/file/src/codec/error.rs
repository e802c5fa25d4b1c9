//! Errors in a chunk's payload.

use crate::event::Event;

/// A payload is not the encoding of the events that its chunk announces. Offsets are in bytes from the
/// payload's start; events are numbered from 0 in the chunk. The chunk is damaged, or has another codec or
/// other parameters than the file. Drop it: the next chunk decodes independently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CodecError {
    /// The chunk announces more events than a chunk can hold.
    #[error("the chunk announces {events} events; a chunk holds at most {max}")]
    TooLarge {
        /// Announced events.
        events: u32,
        /// Most events of a chunk.
        max: u32,
    },
    /// The payload ends inside the literals of a group.
    #[error("the group at payload offset {offset} has {literals} literals, but only {left} bytes follow")]
    TruncatedGroup {
        /// Offset of the group's count byte.
        offset: usize,
        /// Literals that the count byte announces.
        literals: u8,
        /// Bytes after the count byte.
        left: u8,
    },
    /// The payload ends after a match's count; a literal always follows one.
    #[error("the payload ends at offset {offset} after the count of a match; its literal is missing")]
    MissingLiteral {
        /// Length of the payload.
        offset: usize,
    },
    /// The payload continues after the announced events.
    #[error(
        "the payload holds more than the {expected} announced events; the surplus starts at offset {offset}"
    )]
    TooManyEvents {
        /// Announced events.
        expected: u32,
        /// Offset of the surplus. `ecl`: the count byte, if it opens a group; the literal, if it repeats; the
        /// count, if a match is too long. `predict`: the byte in which its code starts.
        offset: usize,
    },
    /// The payload ends before the announced events.
    #[error(
        "the payload ends at offset {offset} after {found} events and {stray} bytes; {expected} events were announced"
    )]
    TooFewEvents {
        /// Announced events.
        expected: u32,
        /// Complete events found.
        found: u32,
        /// Bytes after them, fewer than an event.
        stray: u8,
        /// Length of the payload.
        offset: usize,
    },
    /// The payload ends inside the bits of an event.
    #[error("the payload ends at offset {offset} inside the code of event {event}")]
    TruncatedCode {
        /// Number of the event. If the number of hits is incomplete, the first of these hits.
        event: u32,
        /// Length of the payload.
        offset: usize,
    },
    /// The bits of an event hold an impossible value.
    #[error("event {event}, at bit {bit} of payload offset {offset}: there is no such {field}")]
    BadCode {
        /// Number of the event.
        event: u32,
        /// Offset of the byte in which the field starts.
        offset: usize,
        /// First bit of the field in that byte; 0 is the lowest.
        bit: u8,
        /// Name of the wrong field.
        field: &'static str,
    },
    /// An event has location 0, which no trace point has.
    #[error("event {event} of the chunk has location 0, which no trace point has")]
    ZeroLocation {
        /// Number of the event.
        event: u32,
    },
    /// An event has mask 0: no lane executed it.
    #[error("event {event} of the chunk has mask 0: no lane took part in it")]
    ZeroMask {
        /// Number of the event.
        event: u32,
    },
}

#[inline(always)]
pub(super) fn check_event(number: u32, event: Event) -> Result<(), CodecError> {
    if event.location == 0 {
        return Err(CodecError::ZeroLocation { event: number });
    }
    if event.mask == 0 {
        return Err(CodecError::ZeroMask { event: number });
    }
    Ok(())
}
