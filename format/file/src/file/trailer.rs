//! Trailer with the offset of the index. The `TAIL` body is always the file's last 24 bytes:
//! ```text
//!      0     8  index offset    of the first INDX header (of TAIL itself without entries)
//!      8     8  file length     in bytes, TAIL included
//!     16     4  entries         in all index sections
//!     20     4  index sections  consecutive, directly before TAIL
//! ```

use super::error::FormatError;
use super::fields::Fields;
use super::limits::MAX_INDEXED_SECTIONS;
use super::section::{SECTION_HEADER_BYTES, SectionHeader, SectionKind, check_body, encode_section};

/// Size of the trailer section, header included, in bytes.
pub const TRAILER_BYTES: usize = SECTION_HEADER_BYTES + 24;

/// Last section of a complete file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trailer {
    /// File offset of the first index section's header; without entries, of the trailer.
    pub index_offset: u64,
    /// Length of the file in bytes, trailer included.
    pub file_length: u64,
    /// Number of entries in all index sections.
    pub entries: u32,
    /// Number of index sections.
    pub index_sections: u32,
}

impl Trailer {
    /// Encodes the section, header and body.
    pub fn encode(&self) -> [u8; TRAILER_BYTES] {
        let mut body = Vec::with_capacity(24);
        body.extend_from_slice(&self.index_offset.to_le_bytes());
        body.extend_from_slice(&self.file_length.to_le_bytes());
        body.extend_from_slice(&self.entries.to_le_bytes());
        body.extend_from_slice(&self.index_sections.to_le_bytes());
        encode_section(SectionKind::Trailer, &body).try_into().expect("24 bytes of header and of body")
    }

    /// Decodes the section at file offset `at`. Rejects a file length that is not `at` + [`TRAILER_BYTES`],
    /// an index after `at`, too many entries, and more index sections than entries.
    pub fn parse(bytes: &[u8], at: u64) -> Result<Self, FormatError> {
        let header = SectionHeader::parse(bytes, at)?;
        if header.kind(at)? != Some(SectionKind::Trailer) {
            let found = u32::from_le_bytes(header.tag.0).into();
            return Err(FormatError::invalid(SectionKind::Trailer.name(), "tag", at, found, "TAIL"));
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
