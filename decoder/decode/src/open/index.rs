//! Opens a trace by its index. Reads the sections of launches, early ends and additions, and the headers of
//! sections that no index lists. Frames, accounts and texts in the index are not read.

use crate::count::count;
use warptrace_format::file::limits::MAX_SECTION_BYTES;
use warptrace_format::file::{
    FormatError, Growing, IndexEntry, SECTION_HEADER_BYTES, SectionKind, TRAILER_BYTES, Trailer, decode_index,
};

use super::{Bytes, Contents, Refusal, body_offset, unexpected};

/// Entries in one announcement of reads to the source.
const ENTRIES_AHEAD: usize = 128;

/// Bytes announced at the beginning of a section that no index lists.
const LOOKED_AT: u64 = 128;

/// Reads trailer and index. The listed sections must tile the file: gaps may hold only kinds of sections that
/// an index does not list, so an index that omits a frame is refused.
pub(super) fn read(bytes: &Bytes<'_>, metadata: Growing, metadata_end: u64) -> Result<Contents, Refusal> {
    let trailer_at = bytes.length.saturating_sub(TRAILER_BYTES as u64).max(metadata_end);
    let trailer = Trailer::parse(&bytes.read(trailer_at, TRAILER_BYTES as u64)?, trailer_at)?;
    let mut reader = IndexReader { bytes, contents: Contents::new(metadata), covered: metadata_end };
    let mut at = trailer.index_offset;
    let mut entries = 0;
    for _ in 0..trailer.index_sections {
        let header = bytes.header(at)?;
        if header.kind(at)? != Some(SectionKind::Index) {
            return Err(unexpected(&header, at, "INDX").into());
        }
        let body = bytes.body(SectionKind::Index, &header, at)?;
        let (first, part) = decode_index(&body, body_offset(at))?;
        if first != entries {
            return Err(mismatch("first", body_offset(at), first, entries).into());
        }
        entries = entries.saturating_add(count(part.len()));
        for batch in part.chunks(ENTRIES_AHEAD) {
            reader.announce(batch);
            for entry in batch {
                reader.add(*entry, trailer.index_offset)?;
            }
        }
        at = at.saturating_add(header.total_bytes());
    }
    if entries != trailer.entries {
        return Err(mismatch("entries", body_offset(trailer_at), entries, trailer.entries).into());
    }
    if at != trailer_at {
        let error = FormatError::Invalid {
            section: "INDX",
            field: "end of the index",
            offset: at,
            value: at,
            expected: format!("{trailer_at}, where the trailer begins").into(),
        };
        return Err(error.into());
    }
    reader.cross_gap(trailer.index_offset)?;
    Ok(reader.contents)
}

fn mismatch(field: &'static str, offset: u64, found: u32, expected: u32) -> FormatError {
    FormatError::Invalid {
        section: "INDX",
        field,
        offset,
        value: u64::from(found),
        expected: expected.to_string().into(),
    }
}

struct IndexReader<'a> {
    bytes: &'a Bytes<'a>,
    contents: Contents,
    /// All bytes before this offset belong to known sections.
    covered: u64,
}

impl IndexReader<'_> {
    fn announce(&self, entries: &[IndexEntry]) {
        let (mut ranges, mut covered) = (Vec::new(), self.covered);
        for entry in entries {
            if covered < entry.offset {
                ranges.push(covered..entry.offset.min(covered.saturating_add(LOOKED_AT)));
            }
            if matches!(entry.kind, SectionKind::Launch | SectionKind::EarlyEnd | SectionKind::Additions) {
                ranges.push(entry.offset..entry.end());
            }
            covered = entry.end();
        }
        self.bytes.source.will_read(&ranges);
    }

    fn add(&mut self, entry: IndexEntry, index_offset: u64) -> Result<(), Refusal> {
        let invalid = |field, value, expected: String| {
            Refusal::Unusable(FormatError::Invalid {
                section: "INDX",
                field,
                offset: index_offset,
                value,
                expected: expected.into(),
            })
        };
        if entry.offset < self.covered || entry.offset > index_offset {
            let expected = format!("from {} to {index_offset}, after the entry before", self.covered);
            return Err(invalid("offset", entry.offset, expected));
        }
        let most = (index_offset - entry.offset).min(MAX_SECTION_BYTES + SECTION_HEADER_BYTES as u64);
        if entry.length < SECTION_HEADER_BYTES as u64 || entry.length > most {
            return Err(invalid("length", entry.length, format!("{SECTION_HEADER_BYTES} to {most}")));
        }
        self.cross_gap(entry.offset)?;
        self.covered = entry.end();
        match entry.kind {
            SectionKind::Text => Ok(self.contents.add_text(entry.offset, entry.length)?),
            SectionKind::Frame if entry.chunks == 0 || entry.events < u64::from(entry.chunks) => {
                let expected = format!("at least one for each of 1 or more chunks ({})", entry.chunks);
                Err(invalid("events", entry.events, expected))
            }
            SectionKind::Frame | SectionKind::Accounts => Ok(self.contents.add(entry)?),
            _ => self.add_read(&entry),
        }
    }

    fn add_read(&mut self, entry: &IndexEntry) -> Result<(), Refusal> {
        let header = self.bytes.header(entry.offset)?;
        if header.kind(entry.offset)? != Some(entry.kind) || header.total_bytes() != entry.length {
            let expected = format!("{} of the length that the index gives", entry.kind.name());
            return Err(unexpected(&header, entry.offset, expected).into());
        }
        match self.contents.add_section(self.bytes, entry.kind, &header, entry.offset)? {
            Some(launch) if launch != entry.launch => {
                Err(mismatch("launch", body_offset(entry.offset), entry.launch, launch).into())
            }
            _ => Ok(()),
        }
    }

    fn cross_gap(&mut self, to: u64) -> Result<(), Refusal> {
        while self.covered < to {
            let header = self.bytes.header(self.covered)?;
            match header.kind(self.covered)? {
                None => {}
                Some(
                    SectionKind::Metadata
                    | SectionKind::Additions
                    | SectionKind::Text
                    | SectionKind::Launch
                    | SectionKind::Frame
                    | SectionKind::Accounts
                    | SectionKind::EarlyEnd
                    | SectionKind::Index
                    | SectionKind::Trailer,
                ) => {
                    return Err(unexpected(&header, self.covered, "a section that the index lists").into());
                }
                Some(kind) => {
                    self.contents.add_section(self.bytes, kind, &header, self.covered)?;
                }
            }
            self.covered = self.covered.saturating_add(header.total_bytes());
        }
        if self.covered > to {
            return Err(FormatError::Invalid {
                section: "INDX",
                field: "offset",
                offset: to,
                value: to,
                expected: format!("{}, where the section before ends", self.covered).into(),
            }
            .into());
        }
        Ok(())
    }
}
