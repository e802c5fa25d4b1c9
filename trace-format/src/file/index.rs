//! The index and the trailer that finds it.
//!
//! An `INDX` body:
//!
//! ```text
//! offset  size  field
//!      0     4  first     number of the first entry here, counted over all index sections
//!      4     4  entries   1..=65,536
//!      8     8  reserved  zero
//!     16    48  × entries, in file order; each:
//!            8    offset      of the section's header in the file
//!            8    length      of the section, header included
//!            4    tag         LNCH, FRAM or ACCT
//!            4    launch
//!            4    track       0 for LNCH
//!            4    first warp  0 for LNCH
//!            4    last warp   0 for LNCH
//!            4    chunks      FRAM only, else 0
//!            8    events      FRAM only, else 0
//! ```
//!
//! The `TAIL` body, always the file's last 24 bytes:
//!
//! ```text
//!      0     8  index offset    of the first INDX header (of TAIL itself when there is no entry)
//!      8     8  file length     in bytes, TAIL included
//!     16     4  entries         in all index sections
//!     20     4  index sections  consecutive, directly before TAIL
//! ```

use super::error::FormatError;
use super::fields::Fields;
use super::limits::{MAX_INDEX_ENTRIES, MAX_INDEXED_SECTIONS};
use super::section::{SECTION_HEADER_BYTES, SectionHeader, SectionKind, Tag, check_body, encode_section};

/// Bytes of the fixed part of an index section's body.
pub const INDEX_HEADER_BYTES: usize = 16;
/// Bytes of one index entry.
pub const INDEX_ENTRY_BYTES: usize = 48;
/// Bytes of the whole trailer section.
pub const TRAILER_BYTES: usize = SECTION_HEADER_BYTES + 24;

/// Where one section lies, and what it covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexEntry {
    /// [`SectionKind::Launch`], [`SectionKind::Frame`] or [`SectionKind::Accounts`].
    pub kind: SectionKind,
    /// File offset of the section's header.
    pub offset: u64,
    /// Bytes of the section, header included.
    pub length: u64,
    /// Launch number.
    pub launch: u32,
    /// Track; 0 for a launch.
    pub track: u32,
    /// First warp covered; 0 for a launch.
    pub first_warp: u32,
    /// Last warp covered; 0 for a launch.
    pub last_warp: u32,
    /// Chunks in a frame; 0 for the others.
    pub chunks: u32,
    /// Events in a frame; 0 for the others.
    pub events: u64,
}

impl IndexEntry {
    /// File offset of the first byte after the section; saturates.
    pub const fn end(&self) -> u64 {
        self.offset.saturating_add(self.length)
    }
}

/// The body of one index section: `entries` are the ones from number `first` on.
///
/// # Errors
/// No entry or too many of them.
pub fn encode_index(first: u32, entries: &[IndexEntry]) -> Result<Vec<u8>, FormatError> {
    let count = u32::try_from(entries.len()).unwrap_or(u32::MAX);
    let mut body = Vec::with_capacity(INDEX_HEADER_BYTES + entries.len() * INDEX_ENTRY_BYTES);
    body.extend_from_slice(&first.to_le_bytes());
    body.extend_from_slice(&count.to_le_bytes());
    body.extend_from_slice(&[0; 8]);
    parse_header(&mut Fields::new(SectionKind::Index.name(), &body, 0))?;
    for entry in entries {
        body.extend_from_slice(&entry.offset.to_le_bytes());
        body.extend_from_slice(&entry.length.to_le_bytes());
        body.extend_from_slice(&entry.kind.tag().0);
        for word in [entry.launch, entry.track, entry.first_warp, entry.last_warp, entry.chunks] {
            body.extend_from_slice(&word.to_le_bytes());
        }
        body.extend_from_slice(&entry.events.to_le_bytes());
    }
    Ok(body)
}

fn parse_header(fields: &mut Fields<'_>) -> Result<(u32, u32), FormatError> {
    let first = fields.u32("first")?;
    let count_at = fields.offset();
    let count = fields.u32("entries")?;
    fields.limit("entries", 4, u64::from(count), u64::from(MAX_INDEX_ENTRIES))?;
    if count == 0 {
        return Err(fields.invalid("entries", count_at, 0, "at least 1"));
    }
    fields.zero::<8>("reserved")?;
    Ok((first, count))
}

/// Reads the body of an index section at file offset `at`: the number of its first entry, and its entries.
///
/// # Errors
/// A wrong length, a count over the limit, a tag that an index does not list, a range of warps that ends before
/// it begins.
pub fn decode_index(body: &[u8], at: u64) -> Result<(u32, Vec<IndexEntry>), FormatError> {
    let mut fields = Fields::new(SectionKind::Index.name(), body, at);
    let (first, count) = parse_header(&mut fields)?;
    // Each entry takes 48 bytes of the body, which is there already: the vector cannot outgrow it.
    let mut entries = Vec::with_capacity((count as usize).min(body.len() / INDEX_ENTRY_BYTES));
    for _ in 0..count {
        entries.push(parse_entry(&mut fields)?);
    }
    fields.end()?;
    Ok((first, entries))
}

fn parse_entry(fields: &mut Fields<'_>) -> Result<IndexEntry, FormatError> {
    let offset = fields.u64("offset")?;
    let length = fields.u64("length")?;
    let tag_at = fields.offset();
    let tag = Tag(fields.take("tag")?);
    let kind = match SectionKind::from_tag(tag) {
        Some(kind @ (SectionKind::Launch | SectionKind::Frame | SectionKind::Accounts)) => kind,
        _ => {
            let value = u64::from(u32::from_le_bytes(tag.0));
            return Err(fields.invalid("tag", tag_at, value, "LNCH, FRAM or ACCT"));
        }
    };
    let launch = fields.u32("launch")?;
    let track = fields.u32("track")?;
    let first_warp = fields.u32("first warp")?;
    let last_at = fields.offset();
    let last_warp = fields.u32("last warp")?;
    if last_warp < first_warp {
        let expected = format!("at least the first warp, {first_warp}");
        return Err(fields.invalid("last warp", last_at, u64::from(last_warp), expected));
    }
    let chunks = fields.u32("chunks")?;
    let events = fields.u64("events")?;
    Ok(IndexEntry { kind, offset, length, launch, track, first_warp, last_warp, chunks, events })
}

/// The section at the very end of a finished file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trailer {
    /// File offset of the first index section's header; of the trailer when there is no entry.
    pub index_offset: u64,
    /// Length of the file in bytes, trailer included.
    pub file_length: u64,
    /// Entries in all index sections.
    pub entries: u32,
    /// Index sections.
    pub index_sections: u32,
}

impl Trailer {
    /// The whole section.
    pub fn encode(&self) -> [u8; TRAILER_BYTES] {
        let mut body = Vec::with_capacity(24);
        body.extend_from_slice(&self.index_offset.to_le_bytes());
        body.extend_from_slice(&self.file_length.to_le_bytes());
        body.extend_from_slice(&self.entries.to_le_bytes());
        body.extend_from_slice(&self.index_sections.to_le_bytes());
        encode_section(SectionKind::Trailer, &body).try_into().expect("24 bytes of header and of body")
    }

    /// Reads the section whose bytes are `bytes` and which begins at file offset `at`.
    ///
    /// # Errors
    /// Not a trailer, a wrong checksum, a file length that is not `at` + [`TRAILER_BYTES`], an index that
    /// does not lie before `at`, more entries than the format allows.
    pub fn parse(bytes: &[u8], at: u64) -> Result<Self, FormatError> {
        let header = SectionHeader::parse(bytes, at)?;
        if header.kind(at)? != Some(SectionKind::Trailer) {
            return Err(FormatError::Invalid {
                section: SectionKind::Trailer.name(),
                field: "tag",
                offset: at,
                value: u64::from(u32::from_le_bytes(header.tag.0)),
                expected: "TAIL".into(),
            });
        }
        let body = bytes.get(SECTION_HEADER_BYTES..).unwrap_or_default();
        check_body(SectionKind::Trailer, &header, body, at)?;
        let body_at = at.saturating_add(SECTION_HEADER_BYTES as u64);
        let mut fields = Fields::new(SectionKind::Trailer.name(), body, body_at);
        let index_offset = fields.u64("index offset")?;
        if index_offset > at {
            return Err(fields.invalid("index offset", body_at, index_offset, format!("at most {at}")));
        }
        let file_length = fields.u64("file length")?;
        let expected = at.saturating_add(TRAILER_BYTES as u64);
        if file_length != expected {
            let message = format!("{expected}, the length found; bytes were added or removed");
            return Err(fields.invalid("file length", body_at + 8, file_length, message));
        }
        let entries = fields.u32("entries")?;
        fields.limit("entries", 4, u64::from(entries), u64::from(MAX_INDEXED_SECTIONS))?;
        let index_sections = fields.u32("index sections")?;
        if index_sections > entries {
            let expected = format!("at most the number of entries, {entries}");
            return Err(fields.invalid("index sections", body_at + 20, u64::from(index_sections), expected));
        }
        fields.end()?;
        Ok(Self { index_offset, file_length, entries, index_sections })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> IndexEntry {
        IndexEntry {
            kind: SectionKind::Frame,
            offset: 0x0102,
            length: 0x0304,
            launch: 5,
            track: 1,
            first_warp: 6,
            last_warp: 7,
            chunks: 8,
            events: 9,
        }
    }

    #[test]
    fn index_bytes_are_frozen() {
        let body = encode_index(3, &[entry()]).unwrap();
        assert_eq!(
            body,
            [
                3, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0, 4, 3, 0, 0, 0, 0, 0,
                0, b'F', b'R', b'A', b'M', 5, 0, 0, 0, 1, 0, 0, 0, 6, 0, 0, 0, 7, 0, 0, 0, 8, 0, 0, 0, 9, 0,
                0, 0, 0, 0, 0, 0
            ]
        );
        assert_eq!(decode_index(&body, 0), Ok((3, vec![entry()])));
        for length in 0..body.len() {
            assert!(decode_index(&body[..length], 0).is_err(), "length {length}");
        }
    }

    #[test]
    fn a_count_that_the_body_does_not_hold_is_refused() {
        let mut body = encode_index(0, &[entry()]).unwrap();
        body[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(matches!(decode_index(&body, 0), Err(FormatError::TooLarge { field: "entries", .. })));
        body[4..8].copy_from_slice(&2u32.to_le_bytes());
        assert!(matches!(decode_index(&body, 0), Err(FormatError::Short { field: "offset", .. })));
        assert!(encode_index(0, &[]).is_err());
    }

    #[test]
    fn trailer_bytes_are_frozen() {
        let trailer = Trailer { index_offset: 1000, file_length: 1112, entries: 2, index_sections: 1 };
        let bytes = trailer.encode();
        assert_eq!(bytes.len(), 48);
        assert_eq!(
            bytes[24..],
            [0xe8, 3, 0, 0, 0, 0, 0, 0, 0x58, 4, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0]
        );
        assert_eq!(Trailer::parse(&bytes, 1064), Ok(trailer));
        assert!(matches!(
            Trailer::parse(&bytes, 1065),
            Err(FormatError::Invalid { field: "file length", .. })
        ));
        assert!(matches!(
            Trailer::parse(&bytes, 999),
            Err(FormatError::Invalid { field: "index offset", .. })
        ));
    }
}
