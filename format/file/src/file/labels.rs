//! Labels of launches: the `LABL` section.
//!
//! The body is a structure in the metadata's encoding: the number of its first text (varint32), texts
//! (strings), and launches, each with the number of its text (varint32 each). Numbers of texts are unique in
//! the file, so a repeated label is stored once. The section is optional and not in the index.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::encoded::decode_body;
use super::error::FormatError;
use super::limits::{MAX_INDEXED_SECTIONS, MAX_LABEL_BYTES, MAX_LABELS};
use super::metadata::bounded;
use super::section::{SectionKind, encode_section};

const SECTION: &str = "LABL";
const LAUNCHES_AT_ONCE: usize = 4096;
const NO_NUMBER: &str = "(a label beyond the first 65,535)";

/// One section's part of a file's labels.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchLabels {
    first: u32,
    #[serde(deserialize_with = "bounded::<_, _, MAX_LABELS>")]
    texts: Vec<String>,
    #[serde(deserialize_with = "bounded::<_, _, { MAX_INDEXED_SECTIONS as usize }>")]
    launches: Vec<(u32, u32)>,
}

impl LaunchLabels {
    fn encode_section(&self) -> Vec<u8> {
        let body = postcard::to_allocvec(self).expect("strings and integers in sequences of known length");
        encode_section(SectionKind::Labels, &body)
    }

    /// Decodes the body of a section at file offset `at`.
    pub fn decode(body: &[u8], at: u64) -> Result<Self, FormatError> {
        let contents = |message: String| FormatError::Contents { section: SECTION, offset: at, message };
        let found: Self = decode_body((SECTION, "labels"), body, at)?;
        if (found.first as usize).saturating_add(found.texts.len()) > MAX_LABELS {
            return Err(contents(format!(
                "texts from number {} on, over the limit of {MAX_LABELS}",
                found.first
            )));
        }
        if let Some(long) = found.texts.iter().find(|text| text.len() > MAX_LABEL_BYTES) {
            return Err(contents(format!(
                "a label of {} bytes, over the limit of {MAX_LABEL_BYTES}",
                long.len()
            )));
        }
        Ok(found)
    }
}

/// Labels already in a file, for its writer.
#[derive(Clone, Debug, Default)]
pub struct WrittenLabels(BTreeMap<String, u32>);

impl WrittenLabels {
    /// Encodes the sections, each with header and body, for the labels of `launches`. Cuts a label over
    /// [`MAX_LABEL_BYTES`] bytes. After [`MAX_LABELS`] - 1 labels, a common text replaces other labels.
    pub fn encode_sections(&mut self, launches: &[(u32, &str)]) -> Vec<Vec<u8>> {
        let section = |launches: &[(u32, &str)]| {
            let first = self.next();
            let mut labels = LaunchLabels { first, ..LaunchLabels::default() };
            for &(launch, label) in launches {
                let number = self.number(label, &mut labels.texts);
                labels.launches.push((launch, number));
            }
            labels.encode_section()
        };
        launches.chunks(LAUNCHES_AT_ONCE).map(section).collect()
    }

    fn next(&self) -> u32 {
        u32::try_from(self.0.len()).unwrap_or(u32::MAX)
    }

    fn number(&mut self, label: &str, new: &mut Vec<String>) -> u32 {
        let mut text = fitting(label, MAX_LABEL_BYTES);
        if let Some(&number) = self.0.get(&text) {
            return number;
        }
        // The last number belongs to the common text.
        if self.0.len() + 1 >= MAX_LABELS {
            NO_NUMBER.clone_into(&mut text);
            if let Some(&number) = self.0.get(&text) {
                return number;
            }
        }
        let number = self.next();
        new.push(text.clone());
        self.0.insert(text, number);
        number
    }
}

/// Returns the text, cut to at most `most` bytes and ended with `…` (3 bytes, also if `most` is less) if it is
/// longer.
pub fn fitting(label: &str, most: usize) -> String {
    const MORE: char = '…';
    if label.len() <= most {
        return label.to_owned();
    }
    let mut text = label[..label.floor_char_boundary(most.saturating_sub(MORE.len_utf8()))].to_owned();
    text.push(MORE);
    text
}

/// Labels of a file, for its reader.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownLabels {
    texts: BTreeMap<u32, String>,
    launches: BTreeMap<u32, u32>,
}

impl KnownLabels {
    /// Adds the labels of a section. A later label of a launch, or text of a number, replaces an earlier one.
    pub fn add(&mut self, labels: LaunchLabels) {
        self.texts.extend((labels.first..).zip(labels.texts));
        self.launches.extend(labels.launches);
    }

    /// Returns the label of a launch, or `None`.
    pub fn label_of(&self, launch: u32) -> Option<&str> {
        self.texts.get(self.launches.get(&launch)?).map(String::as_str)
    }

    /// Returns all texts.
    pub fn texts_mut(&mut self) -> impl Iterator<Item = &mut String> {
        self.texts.values_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::super::SECTION_HEADER_BYTES;
    use super::*;

    fn read(sections: &[Vec<u8>]) -> KnownLabels {
        let mut known = KnownLabels::default();
        for section in sections {
            known.add(LaunchLabels::decode(&section[SECTION_HEADER_BYTES..], 0).unwrap());
        }
        known
    }

    #[test]
    fn what_is_written_is_read_and_the_bytes_stay() {
        let mut written = WrittenLabels::default();
        let mut sections = written.encode_sections(&[(0, "ab"), (1, "c"), (300, "ab")]);
        let body = sections[0][SECTION_HEADER_BYTES..].to_vec();
        assert_eq!(body, [0, 2, 2, b'a', b'b', 1, b'c', 3, 0, 0, 1, 1, 0xac, 2, 0]);
        sections.extend(written.encode_sections(&[(301, "d"), (302, "c")]));
        assert_eq!(sections[1][SECTION_HEADER_BYTES..], [2, 1, 1, b'd', 2, 0xad, 2, 2, 0xae, 2, 1]);
        let known = read(&sections);
        let found = [0, 1, 2, 300, 301, 302].map(|launch| known.label_of(launch));
        assert_eq!(found, [Some("ab"), Some("c"), None, Some("ab"), Some("d"), Some("c")]);
        for length in 0..body.len() {
            assert!(LaunchLabels::decode(&body[..length], 9).is_err(), "length {length}");
        }
        assert!(LaunchLabels::decode(&[&body[..], &[0]].concat(), 0).is_err(), "a byte follows");
        // A missing section loses only the labels whose texts it holds.
        let known = read(&sections[1..]);
        assert_eq!([301, 302].map(|launch| known.label_of(launch)), [Some("d"), None]);
    }

    #[test]
    fn labels_that_find_no_room_say_so() {
        let mut written = WrittenLabels::default();
        let long = "é".repeat(MAX_LABEL_BYTES);
        let mut sections = written.encode_sections(&[(0, &long)]);
        let all: Vec<String> = (1..=MAX_LABELS + 1).map(|number| number.to_string()).collect();
        let launches: Vec<(u32, &str)> = (1..).zip(all.iter().map(String::as_str)).collect();
        sections.extend(written.encode_sections(&launches));
        let known = read(&sections);
        let cut = known.label_of(0).unwrap();
        assert!(cut.len() <= MAX_LABEL_BYTES && cut.len() > MAX_LABEL_BYTES - 5 && cut.ends_with("é…"));
        assert_eq!(known.label_of(65_534), Some("65534"));
        assert_eq!([65_535, 65_536, 65_537].map(|launch| known.label_of(launch)), [Some(NO_NUMBER); 3]);
        let text = "x".repeat(MAX_LABEL_BYTES + 1);
        let labels = |first, texts| LaunchLabels { first, texts, launches: Vec::new() };
        for (bad, said) in
            [(labels(0, vec![text]), "1025 bytes"), (labels(u32::MAX, vec!["x".into()]), "65536")]
        {
            let section = bad.encode_section();
            let error = LaunchLabels::decode(&section[SECTION_HEADER_BYTES..], 0).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
