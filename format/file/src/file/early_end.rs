//! Launches that did not run to their end: the `ENDS` section.
//!
//! ```text
//! offset  size  field
//!      0     4  launch
//!      4     1  how         1 the launch failed, 2 the recording was interrupted
//!      5     3  zero
//!      8     …  message     UTF-8, at most 4,096 bytes; empty unless the launch failed
//! ```

use super::error::FormatError;
use super::fields::Fields;
use super::limits::MAX_MESSAGE_BYTES;
use super::section::{SectionKind, encode_section};

/// Bytes of the fixed part of the section's body.
const FIXED_BYTES: usize = 8;
const FAILED: u8 = 1;
const INTERRUPTED: u8 = 2;

const SECTION: &str = "ENDS";

/// Why a launch did not run to its end, as far as the recording knows.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EarlyEnd {
    /// The launch failed.
    Failed {
        /// What the device or the recorder said, at most [`MAX_MESSAGE_BYTES`] of it.
        message: String,
    },
    /// The recording was ended while the kernel ran.
    Interrupted,
}

impl EarlyEnd {
    /// A failed launch. Of a message that is too long the beginning is kept.
    pub fn failed(message: impl Into<String>) -> Self {
        let mut message = message.into();
        message.truncate(message.floor_char_boundary(MAX_MESSAGE_BYTES));
        Self::Failed { message }
    }

    /// Says what became of the launch: "failed" or "was interrupted".
    pub const fn verb(&self) -> &'static str {
        match self {
            Self::Failed { .. } => "failed",
            Self::Interrupted => "was interrupted",
        }
    }

    /// The section, header and body. A reader that does not know it may skip it.
    ///
    /// # Errors
    /// A message of more than [`MAX_MESSAGE_BYTES`].
    pub fn encode_section(&self, launch: u32) -> Result<Vec<u8>, FormatError> {
        let (how, message) = match self {
            Self::Failed { message } => (FAILED, message.as_str()),
            Self::Interrupted => (INTERRUPTED, ""),
        };
        let mut body = Vec::with_capacity(FIXED_BYTES + message.len());
        body.extend_from_slice(&launch.to_le_bytes());
        body.extend_from_slice(&[how, 0, 0, 0]);
        body.extend_from_slice(message.as_bytes());
        // What the reader would refuse is refused here.
        Self::decode(&body, 0)?;
        Ok(encode_section(SectionKind::EarlyEnd, &body))
    }

    /// Reads the body of a section at file offset `at`: the launch, and why it ended.
    ///
    /// # Errors
    /// A wrong length, a kind of end that this build does not know, a message that is too long, not UTF-8, or
    /// where none can be.
    pub fn decode(body: &[u8], at: u64) -> Result<(u32, Self), FormatError> {
        let mut fields = Fields::new(SECTION, body, at);
        let launch = fields.u32("launch")?;
        let how_at = fields.offset();
        let how = fields.u8("how")?;
        fields.zero::<3>("reserved")?;
        let (message, message_at) = (fields.rest(), fields.offset());
        let found = message.len() as u64;
        if message.len() > MAX_MESSAGE_BYTES {
            return Err(FormatError::too_large(
                SECTION,
                "message",
                message_at,
                found,
                MAX_MESSAGE_BYTES as u64,
            ));
        }
        let end = match how {
            FAILED => {
                let message = str::from_utf8(message).map_err(|error| FormatError::Contents {
                    section: SECTION,
                    offset: message_at,
                    message: format!("the message is not UTF-8: {error}"),
                })?;
                Self::Failed { message: message.to_owned() }
            }
            INTERRUPTED if message.is_empty() => Self::Interrupted,
            INTERRUPTED => {
                return Err(fields.invalid(
                    "length of the message",
                    message_at,
                    found,
                    "0 for an interruption",
                ));
            }
            _ => return Err(fields.invalid("how", how_at, how.into(), "1 (failed) or 2 (interrupted)")),
        };
        Ok((launch, end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::{FLAG_OPTIONAL, SECTION_HEADER_BYTES, SectionHeader};

    #[test]
    fn section_bytes_are_frozen() {
        let section = EarlyEnd::failed("no").encode_section(0x0102).unwrap();
        let (header, body) = section.split_at(SECTION_HEADER_BYTES);
        let header = SectionHeader::parse(header, 0).unwrap();
        assert_eq!((header.tag.0, header.version, header.flags), (*b"ENDS", 1, FLAG_OPTIONAL));
        assert_eq!(body, [2, 1, 0, 0, 1, 0, 0, 0, b'n', b'o']);
        let section = EarlyEnd::Interrupted.encode_section(7).unwrap();
        assert_eq!(section[SECTION_HEADER_BYTES..], [7, 0, 0, 0, 2, 0, 0, 0]);
        assert_eq!(EarlyEnd::decode(&section[SECTION_HEADER_BYTES..], 0), Ok((7, EarlyEnd::Interrupted)));
    }

    #[test]
    fn long_messages_are_cut_between_characters() {
        let long = "µ".repeat(MAX_MESSAGE_BYTES);
        let end = EarlyEnd::failed(format!("a{long}"));
        let EarlyEnd::Failed { message } = &end else { panic!("{end:?}") };
        assert_eq!(message.len(), MAX_MESSAGE_BYTES - 1);
        let section = end.encode_section(0).unwrap();
        assert_eq!(EarlyEnd::decode(&section[SECTION_HEADER_BYTES..], 0), Ok((0, end)));
        assert!(EarlyEnd::Failed { message: long }.encode_section(0).is_err());
    }

    #[test]
    fn impossible_ends_are_refused() {
        for body in [
            &[][..],
            &[0; 7],
            &[0; 8],
            &[0, 0, 0, 0, 3, 0, 0, 0],
            &[0, 0, 0, 0, 1, 0, 1, 0],
            &[0, 0, 0, 0, 2, 0, 0, 0, b'x'],
            &[0, 0, 0, 0, 1, 0, 0, 0, 0xff],
            &[&[0, 0, 0, 0, 1, 0, 0, 0][..], &[b'x'; MAX_MESSAGE_BYTES + 1]].concat(),
        ] {
            assert!(EarlyEnd::decode(body, 0).is_err(), "{body:?}");
        }
    }
}
