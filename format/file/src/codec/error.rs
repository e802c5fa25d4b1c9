//! What can be wrong with a chunk's payload.

use crate::event::Event;

/// Why a payload is not the encoding of the events that its chunk announces.
///
/// Offsets are in bytes from the payload's start; events are numbered from 0 inside the chunk. An error means
/// that the chunk is damaged (or was written with another codec or other parameters than the file says): drop
/// it and go on with the next, which decodes on its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CodecError {
    /// The chunk announces more events than a chunk can hold.
    #[error("the chunk announces {events} events; a chunk holds at most {max}")]
    TooLarge {
        /// Events announced.
        events: u32,
        /// Most events of a chunk.
        max: u32,
    },
    /// The payload ends before the literals of a group.
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
    /// The payload goes on after the announced events.
    #[error(
        "the payload holds more than the {expected} announced events; the surplus starts at offset {offset}"
    )]
    TooManyEvents {
        /// Events announced.
        expected: u32,
        /// Offset of the byte that went too far: of the group's count byte where it opens a group, of the
        /// literal where it is a repeat, of a match's count where its bytes are too many.
        offset: usize,
    },
    /// The payload ends before the announced events.
    #[error(
        "the payload ends at offset {offset} after {found} events and {stray} bytes; {expected} events were announced"
    )]
    TooFewEvents {
        /// Events announced.
        expected: u32,
        /// Whole events found.
        found: u32,
        /// Bytes after them, less than an event.
        stray: u8,
        /// Length of the payload.
        offset: usize,
    },
    /// The payload ends inside the bits of an event.
    #[error("the payload ends at offset {offset} inside the code of event {event}")]
    TruncatedCode {
        /// Number of the event; of the first of the hits before it, if it ends in their number.
        event: u32,
        /// Length of the payload.
        offset: usize,
    },
    /// The bits of an event say something that cannot be.
    #[error("event {event}, at bit {bit} of payload offset {offset}: there is no such {field}")]
    BadCode {
        /// Number of the event.
        event: u32,
        /// Offset of the byte in which the field starts.
        offset: usize,
        /// The field's first bit in that byte, 0 the lowest.
        bit: u8,
        /// What is wrong.
        field: &'static str,
    },
    /// An event's location is 0, which no trace point has.
    #[error("event {event} of the chunk has location 0, which no trace point has")]
    ZeroLocation {
        /// Number of the event.
        event: u32,
    },
    /// An event's mask is 0: no lane was there to execute it.
    #[error("event {event} of the chunk has mask 0: no lane took part in it")]
    ZeroMask {
        /// Number of the event.
        event: u32,
    },
}

/// Refuses an event that no trace can contain.
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
