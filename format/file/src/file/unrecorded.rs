//! The `UNTR` section: launches that were not recorded, and notes on recorded launches.
//!
//! The body is a structure in the metadata's encoding: launches (kernel and reason as strings, count as
//! varint64), then notes (strings). Several sections add up. The section is optional and not in the index.

use serde::{Deserialize, Serialize};

use super::encoded::decode_body;
use super::error::FormatError;
use super::labels::fitting;
use super::limits::{MAX_UNRECORDED, MAX_UNRECORDED_NOTES, MAX_UNRECORDED_TEXT_BYTES};
use super::metadata::bounded;
use super::section::{SectionKind, encode_section};

const SECTION: &str = "UNTR";
/// Launches per section, which bounds its size.
const LAUNCHES_AT_ONCE: usize = 4096;
const NOT_ASKED_FOR: &str = "it was not asked for";
const TOO_MANY: [&str; 2] = ["(other kernels)", "there are too many to list them"];

/// Launches that were not recorded, and notes on recorded launches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unrecorded {
    /// Launches that were not recorded, at most [`MAX_UNRECORDED`] entries in a file.
    #[serde(deserialize_with = "bounded::<_, _, MAX_UNRECORDED>")]
    pub launches: Vec<UnrecordedLaunches>,
    /// Differences of the recorded run from the untraced program, at most [`MAX_UNRECORDED_NOTES`] in a file.
    #[serde(deserialize_with = "bounded::<_, _, MAX_UNRECORDED_NOTES>")]
    pub notes: Vec<String>,
}

/// Unrecorded launches of one kernel with one reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnrecordedLaunches {
    /// The kernel's name.
    pub kernel: String,
    /// Why the launches were not recorded.
    pub reason: String,
    /// Number of launches.
    pub launches: u64,
}

impl UnrecordedLaunches {
    /// The reason for launches that the user excluded.
    pub const NOT_ASKED_FOR: &str = NOT_ASKED_FOR;

    /// Returns true if the launches were requested but not recorded.
    pub fn are_missing(&self) -> bool {
        self.reason != NOT_ASKED_FOR
    }

    fn cut(&self) -> Self {
        let [kernel, reason] =
            [&self.kernel, &self.reason].map(|text| fitting(text, MAX_UNRECORDED_TEXT_BYTES));
        Self { kernel, reason, launches: self.launches }
    }
}

impl Unrecorded {
    /// Encodes the sections, each with header and body. Cuts a text over [`MAX_UNRECORDED_TEXT_BYTES`] bytes.
    /// Sums up launches over the limit in one entry, and drops notes over the limit.
    pub fn encode_sections(&self) -> Vec<Vec<u8>> {
        let mut launches: Vec<_> =
            self.launches.iter().filter(|of| of.launches > 0).map(UnrecordedLaunches::cut).collect();
        if launches.len() > MAX_UNRECORDED {
            let rest = launches.split_off(MAX_UNRECORDED - 1);
            let [kernel, reason] = TOO_MANY.map(str::to_owned);
            let sum = rest.iter().fold(0, |sum: u64, of| sum.saturating_add(of.launches));
            launches.push(UnrecordedLaunches { kernel, reason, launches: sum });
        }
        let notes = self.notes.iter().take(MAX_UNRECORDED_NOTES);
        let mut notes: Vec<_> = notes.map(|note| fitting(note, MAX_UNRECORDED_TEXT_BYTES)).collect();
        let mut sections = Vec::new();
        while !launches.is_empty() || !notes.is_empty() {
            let rest = launches.split_off(launches.len().min(LAUNCHES_AT_ONCE));
            let part =
                Self { launches: std::mem::replace(&mut launches, rest), notes: std::mem::take(&mut notes) };
            let body =
                postcard::to_allocvec(&part).expect("strings and integers in sequences of known length");
            sections.push(encode_section(SectionKind::Unrecorded, &body));
        }
        sections
    }

    /// Decodes the body of a section at file offset `at`. Rejects entries of 0 launches.
    pub fn decode(body: &[u8], at: u64) -> Result<Self, FormatError> {
        let contents = |message| Err(FormatError::Contents { section: SECTION, offset: at, message });
        let found: Self = decode_body((SECTION, "launches that were not recorded"), body, at)?;
        let texts = found.launches.iter().flat_map(|of| [&of.kernel, &of.reason]).chain(&found.notes);
        if let Some(long) = texts.map(String::len).find(|length| *length > MAX_UNRECORDED_TEXT_BYTES) {
            return contents(format!(
                "a text of {long} bytes, over the limit of {MAX_UNRECORDED_TEXT_BYTES}"
            ));
        }
        if found.launches.iter().any(|of| of.launches == 0) {
            return contents("no launch of a kernel that is listed".to_owned());
        }
        Ok(found)
    }

    /// Returns all texts: kernels, reasons and notes.
    pub fn texts_mut(&mut self) -> impl Iterator<Item = &mut String> {
        self.launches.iter_mut().flat_map(|of| [&mut of.kernel, &mut of.reason]).chain(&mut self.notes)
    }
}

#[cfg(test)]
mod tests {
    use super::super::SECTION_HEADER_BYTES;
    use super::*;

    fn of(kernel: &str, reason: &str, launches: u64) -> UnrecordedLaunches {
        UnrecordedLaunches { kernel: kernel.to_owned(), reason: reason.to_owned(), launches }
    }

    fn read(sections: &[Vec<u8>]) -> Vec<Unrecorded> {
        let decode = |section: &Vec<u8>| Unrecorded::decode(&section[SECTION_HEADER_BYTES..], 0).unwrap();
        sections.iter().map(decode).collect()
    }

    #[test]
    fn what_is_written_is_read_and_the_bytes_stay() {
        let all =
            Unrecorded { launches: vec![of("ab", "c", 300), of("d", "", 1)], notes: vec!["ef".to_owned()] };
        let sections = all.encode_sections();
        let body = &sections[0][SECTION_HEADER_BYTES..];
        assert_eq!(body, [2, 2, b'a', b'b', 1, b'c', 0xac, 2, 1, b'd', 0, 1, 1, 2, b'e', b'f']);
        assert_eq!(read(&sections), [all]);
        for length in 0..body.len() {
            assert!(Unrecorded::decode(&body[..length], 9).is_err(), "length {length}");
        }
        assert!(Unrecorded::decode(&[body, &[0]].concat(), 0).is_err(), "a byte follows");
        assert!(Unrecorded::decode(&[1, 0, 0, 0, 0], 0).is_err(), "no launch");
        assert!(Unrecorded::default().encode_sections().is_empty());
    }

    #[test]
    fn what_finds_no_room_is_cut_and_summed_up() {
        let long = "é".repeat(MAX_UNRECORDED_TEXT_BYTES);
        let launches = vec![of(&long, &long, 2); MAX_UNRECORDED + 1];
        let read =
            read(&Unrecorded { launches, notes: vec![long; MAX_UNRECORDED_NOTES + 1] }.encode_sections());
        let launches: Vec<_> = read.iter().flat_map(|part| &part.launches).collect();
        assert_eq!((launches.len(), launches[MAX_UNRECORDED - 1].launches), (MAX_UNRECORDED, 4));
        assert!(launches[0].kernel.ends_with("é…") && launches[0].reason.len() <= MAX_UNRECORDED_TEXT_BYTES);
        assert_eq!((read[0].notes.len(), read[1].notes.len()), (MAX_UNRECORDED_NOTES, 0));
        let body = postcard::to_allocvec(&(vec![("x".repeat(1025), "", 1_u64)], Vec::<&str>::new())).unwrap();
        assert!(Unrecorded::decode(&body, 0).unwrap_err().to_string().contains("1025 bytes"));
    }
}
