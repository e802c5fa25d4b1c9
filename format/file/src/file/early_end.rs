//! Incomplete launches: the `ENDS` section.
//!
//! ```text
//! offset  size  field
//!      0     4  launch
//!      4     1  how         1 failed, 2 interrupted, 3 still running with known positions of warps,
//!                           4 failed with known positions of warps
//!      5     3  zero
//!      8     …  message     of kind 1: UTF-8, at most 4,096 bytes
//! ```
//!
//! Kinds 3 and 4 have a list in the metadata's encoding: the positions of warps that had not ended; in kind 4
//! after the message, as a text. An element is a list of ranges of warps (first and number, varint32) and a
//! list of lanes (location, varint16; mask, varint32; a byte: 1 if other lanes continued from there).

use serde::{Deserialize, Serialize};

use super::encoded::decode_body;
use super::error::FormatError;
use super::fields::Fields;
use super::limits::{MAX_MESSAGE_BYTES, MAX_WARP_RANGES};
use super::metadata::bounded;
use super::section::{SectionKind, encode_section};

const FIXED_BYTES: usize = 8;
const FAILED: u8 = 1;
const INTERRUPTED: u8 = 2;
const RUNNING: u8 = 3;
const FAILED_AT: u8 = 4;

const SECTION: &str = "ENDS";

/// Reason why a launch did not complete.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EarlyEnd {
    /// The launch failed.
    Failed {
        /// Message of the device or the recorder, at most [`MAX_MESSAGE_BYTES`] long.
        message: String,
        /// Known positions of warps that had not ended, at most [`MAX_WARP_RANGES`] ranges.
        positions: Vec<WarpsAt>,
    },
    /// The recording was stopped while the kernel ran.
    Interrupted,
    /// Like [`Interrupted`](Self::Interrupted), with known positions of warps.
    Running {
        /// Known positions of warps that had not ended, at most [`MAX_WARP_RANGES`] ranges.
        positions: Vec<WarpsAt>,
    },
}

/// Warps at the same positions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WarpsAt {
    /// Ranges of warps: first warp and number of warps.
    #[serde(deserialize_with = "bounded::<_, _, MAX_WARP_RANGES>")]
    pub warps: Vec<(u32, u32)>,
    /// Positions of their lanes. Lanes not listed have left. Empty for warps that had not begun.
    #[serde(deserialize_with = "bounded::<_, _, 64>")]
    pub lanes: Vec<LanesAt>,
}

/// Lanes of a warp at the same position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LanesAt {
    /// Last location that they reached; 0 if none.
    pub location: u16,
    /// The lanes.
    pub mask: u32,
    /// True if other lanes reached the location with them and continued or left.
    pub left_behind: bool,
}

#[derive(Deserialize)]
struct Positions(#[serde(deserialize_with = "bounded::<_, _, MAX_WARP_RANGES>")] Vec<WarpsAt>);

impl EarlyEnd {
    /// Creates a failed launch without positions. Cuts a message that is too long.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::failed_at(message, Vec::new())
    }

    /// Creates a failed launch. Cuts a message that is too long.
    pub fn failed_at(message: impl Into<String>, positions: Vec<WarpsAt>) -> Self {
        let mut message = message.into();
        message.truncate(message.floor_char_boundary(MAX_MESSAGE_BYTES));
        Self::Failed { message, positions }
    }

    /// Returns the positions of warps that had not ended; empty if unknown.
    pub fn positions(&self) -> &[WarpsAt] {
        match self {
            Self::Failed { positions, .. } | Self::Running { positions } => positions,
            Self::Interrupted => &[],
        }
    }

    /// Returns the predicate of a sentence about the launch, such as "failed".
    pub const fn verb(&self) -> &'static str {
        match self {
            Self::Failed { .. } => "failed",
            Self::Interrupted => "was interrupted",
            Self::Running { .. } => "had not ended",
        }
    }

    /// Encodes the section, header and body. Fails for a message or a list that is too long.
    pub fn encode_section(&self, launch: u32) -> Result<Vec<u8>, FormatError> {
        let (how, rest) = match self {
            Self::Failed { message, positions } if positions.is_empty() => {
                (FAILED, message.as_bytes().to_vec())
            }
            Self::Failed { message, positions } => (FAILED_AT, encoded(&(message, positions))),
            Self::Interrupted => (INTERRUPTED, Vec::new()),
            Self::Running { positions } => (RUNNING, encoded(positions)),
        };
        let mut body = Vec::with_capacity(FIXED_BYTES + rest.len());
        body.extend_from_slice(&launch.to_le_bytes());
        body.extend_from_slice(&[how, 0, 0, 0]);
        body.extend_from_slice(&rest);
        Self::decode(&body, 0)?;
        Ok(encode_section(SectionKind::EarlyEnd, &body))
    }

    /// Decodes the body of a section at file offset `at`: the launch number, and its end. Rejects an unknown
    /// kind, a list or message that is too long, and a message that is not UTF-8 or of an interruption.
    pub fn decode(body: &[u8], at: u64) -> Result<(u32, Self), FormatError> {
        let mut fields = Fields::new(SECTION, body, at);
        let launch = fields.u32("launch")?;
        let how_at = fields.offset();
        let how = fields.u8("how")?;
        fields.zero::<3>("reserved")?;
        let (message, message_at) = (fields.rest(), fields.offset());
        let found = message.len() as u64;
        let too_large = |what, found, limit: usize| {
            Err(FormatError::too_large(SECTION, what, message_at, found, limit as u64))
        };
        if how == RUNNING || how == FAILED_AT {
            let what = (SECTION, "positions of warps");
            let (message, Positions(positions)) = match how {
                RUNNING => (String::new(), decode_body(what, message, message_at)?),
                _ => decode_body(what, message, message_at)?,
            };
            let ranges = positions.iter().map(|at| at.warps.len() as u64).sum();
            if ranges > MAX_WARP_RANGES as u64 {
                return too_large("ranges of warps", ranges, MAX_WARP_RANGES);
            }
            if message.len() > MAX_MESSAGE_BYTES {
                return too_large("message", message.len() as u64, MAX_MESSAGE_BYTES);
            }
            let end = if how == RUNNING {
                Self::Running { positions }
            } else {
                Self::Failed { message, positions }
            };
            return Ok((launch, end));
        }
        if message.len() > MAX_MESSAGE_BYTES {
            return too_large("message", found, MAX_MESSAGE_BYTES);
        }
        let end = match how {
            FAILED => {
                let message = str::from_utf8(message).map_err(|error| FormatError::Contents {
                    section: SECTION,
                    offset: message_at,
                    message: format!("the message is not UTF-8: {error}"),
                })?;
                Self::failed(message)
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
                    "1 or 4 (failed), 2 (interrupted) or 3 (it still ran)",
                ));
            }
        };
        Ok((launch, end))
    }
}

fn encoded(value: &impl Serialize) -> Vec<u8> {
    postcard::to_allocvec(value).expect("integers and texts in sequences")
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
        let failed = EarlyEnd::Failed { message: "no".to_owned(), positions: positions.clone() };
        let end = EarlyEnd::Running { positions };
        let section = end.encode_section(7).unwrap();
        let body = &section[SECTION_HEADER_BYTES..];
        let expected =
            [2, 2, 0, 2, 5, 0xac, 2, 2, 3, 1, 1, 0x82, 2, 0xfe, 0xff, 0xff, 0xff, 0xf, 0, 1, 2, 1, 0];
        assert_eq!(body, [&[7, 0, 0, 0, 3, 0, 0, 0][..], &expected].concat());
        assert_eq!(EarlyEnd::decode(body, 0), Ok((7, end)));
        let section = failed.encode_section(7).unwrap();
        let body = &section[SECTION_HEADER_BYTES..];
        assert_eq!(body, [&[7, 0, 0, 0, 4, 0, 0, 0, 2, b'n', b'o'][..], &expected].concat());
        assert_eq!(EarlyEnd::decode(body, 0), Ok((7, failed)));
        let positions = vec![WarpsAt { warps: vec![(0, 1); MAX_WARP_RANGES / 2 + 1], lanes: Vec::new() }; 2];
        assert!(EarlyEnd::Running { positions }.encode_section(7).is_err());
    }

    #[test]
    fn long_messages_are_cut_between_characters() {
        let long = "µ".repeat(MAX_MESSAGE_BYTES);
        let end = EarlyEnd::failed(format!("a{long}"));
        let EarlyEnd::Failed { message, .. } = &end else { panic!("{end:?}") };
        assert_eq!(message.len(), MAX_MESSAGE_BYTES - 1);
        let section = end.encode_section(0).unwrap();
        assert_eq!(EarlyEnd::decode(&section[SECTION_HEADER_BYTES..], 0), Ok((0, end)));
        for positions in [Vec::new(), vec![WarpsAt::default()]] {
            assert!(EarlyEnd::Failed { message: long.clone(), positions }.encode_section(0).is_err());
        }
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
            &[0, 0, 0, 0, 4, 0, 0, 0, 1, 0xff, 0],
            &[0, 0, 0, 0, 5, 0, 0, 0],
            &[0, 0, 0, 0, 1, 0, 1, 0],
            &[0, 0, 0, 0, 2, 0, 0, 0, b'x'],
            &[0, 0, 0, 0, 1, 0, 0, 0, 0xff],
            &[&[0, 0, 0, 0, 1, 0, 0, 0][..], &[b'x'; MAX_MESSAGE_BYTES + 1]].concat(),
        ] {
            assert!(EarlyEnd::decode(body, 0).is_err(), "{body:?}");
        }
    }
}
