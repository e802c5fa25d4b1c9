//! Opening by the index: a few reads, however long the file is.

use crate::count::count;
use warptrace_format::file::limits::MAX_SECTION_BYTES;
use warptrace_format::file::{
    EarlyEnd, FormatError, Growing, IndexEntry, LaunchInfo, SECTION_HEADER_BYTES, SectionHeader, SectionKind,
    TRAILER_BYTES, Trailer, decode_index,
};

use super::{Bytes, Contents, Refusal, body_offset, unexpected};

/// Entries whose sections a source is told of before they are read.
const ENTRIES_AHEAD: usize = 128;

/// Bytes at the beginning of a section that is skipped which are looked at.
const LOOKED_AT: u64 = 128;

/// Reads trailer and index. What the index lists must tile the file: between two listed sections there may
/// only be sections that a reader may skip, so an index that leaves a frame out is refused.
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
    /// Everything before this offset is accounted for.
    covered: u64,
}

impl IndexReader<'_> {
    /// Tells the source what [`add`](Self::add) reads for these entries.
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
        if entry.kind == SectionKind::Launch {
            return self.add_launch(&entry);
        }
        if entry.kind == SectionKind::EarlyEnd {
            return self.add_early_end(&entry);
        }
        if entry.kind == SectionKind::Text {
            return Ok(self.contents.add_text(entry.offset, entry.length)?);
        }
        if entry.kind == SectionKind::Additions {
            let (_, body) = self.section(&entry, "MORE of the length that the index gives")?;
            return Ok(self.contents.add_additions(&body, entry.offset)?);
        }
        if entry.kind == SectionKind::Frame && (entry.chunks == 0 || entry.events < u64::from(entry.chunks)) {
            let expected = format!("at least one for each of 1 or more chunks ({})", entry.chunks);
            return Err(invalid("events", entry.events, expected));
        }
        Ok(self.contents.add(entry)?)
    }

    /// Reads a section that the index lists: its header and its body.
    fn section(
        &self,
        entry: &IndexEntry,
        expected: &'static str,
    ) -> Result<(SectionHeader, Vec<u8>), Refusal> {
        let header = self.bytes.header(entry.offset)?;
        if header.kind(entry.offset)? != Some(entry.kind) || header.total_bytes() != entry.length {
            return Err(unexpected(&header, entry.offset, expected).into());
        }
        let body = self.bytes.body(entry.kind, &header, entry.offset)?;
        Ok((header, body))
    }

    fn add_early_end(&mut self, entry: &IndexEntry) -> Result<(), Refusal> {
        let (_, body) = self.section(entry, "ENDS of the length that the index gives")?;
        let (launch, end) = EarlyEnd::decode(&body, body_offset(entry.offset))?;
        if launch != entry.launch {
            return Err(mismatch("launch", body_offset(entry.offset), entry.launch, launch).into());
        }
        Ok(self.contents.add_early_end((launch, end), entry.offset)?)
    }

    fn add_launch(&mut self, entry: &IndexEntry) -> Result<(), Refusal> {
        let (header, body) = self.section(entry, "LNCH of the length that the index gives")?;
        let launch = LaunchInfo::decode(header.version, &body, body_offset(entry.offset))?;
        if launch.number() != entry.launch {
            return Err(mismatch("launch", body_offset(entry.offset), entry.launch, launch.number()).into());
        }
        Ok(self.contents.add_launch(launch, entry.offset)?)
    }

    /// Walks from the end of what is covered to `to` over sections that may be skipped.
    fn cross_gap(&mut self, to: u64) -> Result<(), Refusal> {
        while self.covered < to {
            let header = self.bytes.header(self.covered)?;
            match header.kind(self.covered)? {
                None => {}
                Some(kind @ (SectionKind::Times | SectionKind::Spans)) => {
                    self.contents.add_times(kind, self.covered);
                }
                Some(SectionKind::Code | SectionKind::Waits) => {
                    self.contents.codes.push((header, self.covered));
                }
                Some(
                    kind @ (SectionKind::Sites
                    | SectionKind::Data
                    | SectionKind::DataAccounts
                    | SectionKind::Buffers),
                ) => {
                    self.contents.add_data(self.bytes, kind, &header, self.covered)?;
                }
                Some(SectionKind::Host) => self.contents.hosts.push((header, self.covered)),
                Some(SectionKind::Origin) => self.contents.origins.push((header, self.covered)),
                Some(SectionKind::Labels) => self.contents.label_parts.push((header, self.covered)),
                Some(_) => {
                    return Err(unexpected(&header, self.covered, "a section that the index lists").into());
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
