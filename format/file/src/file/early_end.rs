//! Launches that did not run to their end: the `ENDS` section.
//!
//! ```text
//! offset  size  field
//!      0     4  launch
//!      4     1  how         1 the launch failed, 2 the recording was interrupted, 3 it still ran
//!      5     3  zero
//!      8     …  message     UTF-8, at most 4,096 bytes; empty unless the launch failed
//! ```
//! Of a launch that still ran, a list in the metadata's encoding stands in the place of the message: where its warps were.
//! An element is a list of warps (first and how many, varint32) and a list of where their lanes were (location, varint16;
//! mask, varint32; and 1 if others that came there with them have gone on, else 0).

use serde::{Deserialize, Serialize};

use super::encoded::decode_body;
use super::error::FormatError;
use super::fields::Fields;
use super::limits::{MAX_MESSAGE_BYTES, MAX_WARP_RANGES};
use super::metadata::bounded;
use super::section::{SectionKind, encode_section};

/// Bytes of the fixed part of the section's body.
const FIXED_BYTES: usize = 8;
const FAILED: u8 = 1;
const INTERRUPTED: u8 = 2;
const RUNNING: u8 = 3;

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
    /// The same, and where its warps were is known.
    Running {
        /// Of warps that had not ended, where they were: at most [`MAX_WARP_RANGES`] ranges in all.
        positions: Vec<WarpsAt>,
    },
}

/// Warps that were at the same places.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WarpsAt {
    /// The first warp, and how many follow each other.
    #[serde(deserialize_with = "bounded::<_, _, MAX_WARP_RANGES>")]
    pub warps: Vec<(u32, u32)>,
    /// Where their lanes were; those that are not listed have left. Empty for warps that had not begun.
    #[serde(deserialize_with = "bounded::<_, _, 64>")]
    pub lanes: Vec<LanesAt>,
}

/// Lanes of a warp that were at the same place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LanesAt {
    /// The location that they came to last; 0 if they came to none.
    pub location: u16,
    /// The lanes.
    pub mask: u32,
    /// Whether others that came there with them have gone on, or left.
    pub left_behind: bool,
}

#[derive(Serialize, Deserialize)]
struct Positions(#[serde(deserialize_with = "bounded::<_, _, MAX_WARP_RANGES>")] Vec<WarpsAt>);

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
            Self::Running { .. } => "had not ended",
        }
    }

    /// The section, header and body. A reader that does not know it may skip it.
    ///
    /// # Errors
    /// A message of more than [`MAX_MESSAGE_BYTES`], more ranges of warps than [`MAX_WARP_RANGES`].
    pub fn encode_section(&self, launch: u32) -> Result<Vec<u8>, FormatError> {
        let (how, rest) = match self {
            Self::Failed { message } => (FAILED, message.as_bytes().to_vec()),
            Self::Interrupted => (INTERRUPTED, Vec::new()),
            Self::Running { positions } => {
                let positions = Positions(positions.clone());
                (RUNNING, postcard::to_allocvec(&positions).expect("integers in sequences"))
            }
        };
        let mut body = Vec::with_capacity(FIXED_BYTES + rest.len());
        body.extend_from_slice(&launch.to_le_bytes());
        body.extend_from_slice(&[how, 0, 0, 0]);
        body.extend_from_slice(&rest);
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
        if how == RUNNING {
            let Positions(positions) = decode_body((SECTION, "positions of warps"), message, message_at)?;
            let ranges = positions.iter().map(|at| at.warps.len() as u64).sum();
            if ranges > MAX_WARP_RANGES as u64 {
                let limit = MAX_WARP_RANGES as u64;
                return Err(FormatError::too_large(SECTION, "ranges of warps", message_at, ranges, limit));
            }
            return Ok((launch, Self::Running { positions }));
        }
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
            _ => {
                return Err(fields.invalid(
                    "how",
                    how_at,
                    how.into(),
                    "1 (failed), 2 (interrupted) or 3 (it still ran)",
                ));
            }
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
        let at = |location, mask, left_behind| LanesAt { location, mask, left_behind };
        let positions = vec![
            WarpsAt { warps: vec![(0, 2), (5, 300)], lanes: vec![at(3, 1, true), at(0x102, !1, false)] },
            WarpsAt { warps: vec![(2, 1)], lanes: Vec::new() },
        ];
        let end = EarlyEnd::Running { positions };
        let section = end.encode_section(7).unwrap();
        let body = &section[SECTION_HEADER_BYTES..];
        let expected =
            [2, 2, 0, 2, 5, 0xac, 2, 2, 3, 1, 1, 0x82, 2, 0xfe, 0xff, 0xff, 0xff, 0xf, 0, 1, 2, 1, 0];
        assert_eq!(body, [&[7, 0, 0, 0, 3, 0, 0, 0][..], &expected].concat());
        assert_eq!(EarlyEnd::decode(body, 0), Ok((7, end)));
        let positions = vec![WarpsAt { warps: vec![(0, 1); MAX_WARP_RANGES / 2 + 1], lanes: Vec::new() }; 2];
        assert!(EarlyEnd::Running { positions }.encode_section(7).is_err());
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
            &[0, 0, 0, 0, 3, 0, 0, 0, 1, 1, 0],
            &[0, 0, 0, 0, 4, 0, 0, 0],
            &[0, 0, 0, 0, 1, 0, 1, 0],
            &[0, 0, 0, 0, 2, 0, 0, 0, b'x'],
            &[0, 0, 0, 0, 1, 0, 0, 0, 0xff],
            &[&[0, 0, 0, 0, 1, 0, 0, 0][..], &[b'x'; MAX_MESSAGE_BYTES + 1]].concat(),
        ] {
            assert!(EarlyEnd::decode(body, 0).is_err(), "{body:?}");
        }
    }
}
