//! Waits in the compiled code: the `WAIT` section.
//!
//! The body is a list in the metadata's encoding. Each entry has the location's id (varint16), its barrier
//! and phase (strings), a list of copies (file as string, line and column as varint32), a byte (1 if the
//! copies are certain, otherwise 0), and an optional place after a byte 0 or 1. The section is optional and
//! not in the index.

use serde::{Deserialize, Serialize};

use super::encoded::decode_body;
use super::error::FormatError;
use super::limits::MAX_LOCATIONS;
use super::metadata::{LocationInfo, bounded};
use super::section::{SectionKind, encode_section};

const SECTION: &str = "WAIT";
/// Maximum number of copies of a wait in a file.
pub const MAX_WAIT_COPIES: usize = 64;
/// Maximum size of a text, in bytes.
const MAX_WAIT_TEXT: usize = 1024;
const LOCATIONS_AT_ONCE: usize = 128;

/// Wait that begins at a location, as far as the compiled code shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitInfo {
    /// Barrier: `bar 0`, `cluster`, `mbarrier full+8`; `?` for a part known only at run time; or empty.
    pub barrier: String,
    /// Awaited phase (parity), or `?`; empty without phases.
    pub phase: String,
    /// Source positions of the awaited asynchronous copies, at most [`MAX_WAIT_COPIES`].
    #[serde(deserialize_with = "bounded::<_, _, MAX_WAIT_COPIES>")]
    pub copies: Vec<CopyPlace>,
    /// True if lanes always wait for exactly these copies.
    pub is_certain: bool,
    /// Source position of the wait, if the location is a block and has another position.
    pub at: Option<CopyPlace>,
}

/// Source position of an asynchronous copy.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CopyPlace {
    /// Source file.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1; 0 if unknown.
    pub column: u32,
}

#[derive(Serialize, Deserialize)]
struct Body(#[serde(deserialize_with = "bounded::<_, _, MAX_LOCATIONS>")] Vec<(u16, WaitInfo)>);

impl WaitInfo {
    /// Encodes the sections, each with header and body, for the locations with known waits. Drops copies over
    /// [`MAX_WAIT_COPIES`] and then clears `is_certain`. Cuts texts over 1,024 bytes.
    pub fn encode_sections(locations: &[LocationInfo]) -> Vec<Vec<u8>> {
        let known: Vec<(u16, Self)> =
            locations.iter().filter_map(|info| Some((info.id, info.wait.as_deref()?.fitting()))).collect();
        let section = |part: &[(u16, Self)]| {
            let body = postcard::to_allocvec(&Body(part.to_vec())).expect("texts and integers in sequences");
            encode_section(SectionKind::Waits, &body)
        };
        known.chunks(LOCATIONS_AT_ONCE).map(section).collect()
    }

    fn fitting(&self) -> Self {
        let cut = |text: &str| text[..text.floor_char_boundary(MAX_WAIT_TEXT)].to_owned();
        let copies = self.copies.iter().take(MAX_WAIT_COPIES);
        let copies = copies.map(|copy| CopyPlace { file: cut(&copy.file), ..*copy }).collect();
        let is_certain = self.is_certain && self.copies.len() <= MAX_WAIT_COPIES;
        let at = self.at.as_ref().map(|at| CopyPlace { file: cut(&at.file), ..*at });
        Self { barrier: cut(&self.barrier), phase: cut(&self.phase), copies, is_certain, at }
    }

    /// Decodes the body of a section at file offset `at`: ids of locations, and their waits. Rejects more
    /// than [`MAX_LOCATIONS`] locations or [`MAX_WAIT_COPIES`] copies of one.
    pub fn decode(body: &[u8], at: u64) -> Result<Vec<(u16, Self)>, FormatError> {
        let Body(found) = decode_body((SECTION, "waits"), body, at)?;
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::super::SECTION_HEADER_BYTES;
    use super::*;

    fn wait(copies: usize) -> LocationInfo {
        let copy = CopyPlace { file: "a".to_owned(), line: 300, column: 2 };
        let (barrier, phase) = ("bar 0".to_owned(), "?".to_owned());
        let at = (copies == 1).then(|| copy.clone());
        let wait = WaitInfo { barrier, phase, copies: vec![copy; copies], is_certain: true, at };
        LocationInfo { wait: Some(Box::new(wait)), ..LocationInfo::new(9, "x", "") }
    }

    #[test]
    fn what_is_written_is_read_and_the_bytes_stay() {
        let locations = [LocationInfo::new(3, "y", ""), wait(1)];
        let [section] = &*WaitInfo::encode_sections(&locations) else { panic!("one section") };
        let body = &section[SECTION_HEADER_BYTES..];
        assert_eq!(body, b"\x01\x09\x05bar 0\x01?\x01\x01a\xac\x02\x02\x01\x01\x01a\xac\x02\x02");
        let found = WaitInfo::decode(body, 0).unwrap();
        assert_eq!(found, [(9, *locations[1].wait.clone().unwrap())]);
        for length in 0..body.len() {
            assert!(WaitInfo::decode(&body[..length], 9).is_err(), "length {length}");
        }
        assert!(WaitInfo::decode(&[body, &[0]].concat(), 0).is_err());
        assert_eq!(WaitInfo::encode_sections(&locations[..1]), Vec::<Vec<u8>>::new());
    }

    #[test]
    fn what_does_not_fit_is_left_out_and_said() {
        let [section] = &*WaitInfo::encode_sections(&[wait(65)]) else { panic!("one section") };
        let found = WaitInfo::decode(&section[SECTION_HEADER_BYTES..], 0).unwrap();
        assert_eq!((found[0].1.copies.len(), found[0].1.is_certain), (64, false));
        let many: Vec<LocationInfo> = (0..129).map(|_| wait(0)).collect();
        assert_eq!(WaitInfo::encode_sections(&many).len(), 2);
    }
}
