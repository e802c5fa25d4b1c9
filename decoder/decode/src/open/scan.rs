//! Opens a trace without an index: walks from section to section and reads headers.

use warptrace_format::file::{
    FormatError, Growing, SECTION_HEADER_BYTES, SectionKind, TRAILER_BYTES, Trailer,
};

use super::{Bytes, Contents, unexpected};
use crate::error::OpenError;
use crate::file::{Completeness, PrefixReason};

/// Walks over the sections from `metadata_end` until the file ends or a section cannot be read. `why` is the
/// reason why the index cannot be used. Fails with I/O errors, or at a section that this build must not skip.
pub(super) fn read(
    bytes: &Bytes<'_>,
    metadata: Growing,
    metadata_end: u64,
    why: FormatError,
) -> Result<(Contents, Completeness), OpenError> {
    let mut scan = Scan { bytes, contents: Contents::new(metadata), index_at: None };
    let mut at = metadata_end;
    let reason = loop {
        match scan.step(at) {
            Ok(Step::Next(next)) => at = next,
            Ok(Step::End(end)) => break end,
            Err(OpenError::Format(error)) if refuses(&error) => return Err(error.into()),
            Err(OpenError::Format(error)) => break End::Because(PrefixReason::Damaged(error)),
            Err(other) => return Err(other),
        }
    };
    let (valid_bytes, reason) = match reason {
        End::Because(reason) => (at, reason),
        End::Trailer => (scan.index_at.unwrap_or(at), PrefixReason::IndexDamaged(why)),
    };
    Ok((scan.contents, Completeness::Prefix { valid_bytes, reason }))
}

/// Returns true if the file needs a newer reader. It is not damaged: the header's checksum matches.
fn refuses(error: &FormatError) -> bool {
    matches!(
        error,
        FormatError::UnknownSection { .. } | FormatError::Version { .. } | FormatError::Flags { .. }
    )
}

enum End {
    Because(PrefixReason),
    Trailer,
}

enum Step {
    Next(u64),
    End(End),
}

struct Scan<'a> {
    bytes: &'a Bytes<'a>,
    contents: Contents,
    index_at: Option<u64>,
}

impl Scan<'_> {
    fn step(&mut self, at: u64) -> Result<Step, OpenError> {
        let remaining = self.bytes.length.saturating_sub(at);
        if remaining == 0 {
            return Ok(Step::End(End::Because(PrefixReason::Unfinished)));
        }
        if remaining < SECTION_HEADER_BYTES as u64 {
            let missing = SECTION_HEADER_BYTES as u64 - remaining;
            let reason = PrefixReason::CutShort { section: None, offset: at, missing };
            return Ok(Step::End(End::Because(reason)));
        }
        let header = self.bytes.header(at)?;
        let kind = header.kind(at)?;
        if header.total_bytes() > remaining {
            let missing = header.total_bytes() - remaining;
            let reason = PrefixReason::CutShort { section: Some(header.tag), offset: at, missing };
            return Ok(Step::End(End::Because(reason)));
        }
        let next = at + header.total_bytes();
        match kind {
            None => {}
            Some(SectionKind::Trailer) => return self.trailer(at, next),
            Some(SectionKind::Index) => {
                self.index_at.get_or_insert(at);
            }
            // Only index sections may stand between the index and the trailer.
            Some(_) if self.index_at.is_some() => {
                return Err(unexpected(&header, at, "INDX or TAIL after the first INDX").into());
            }
            Some(kind) => {
                self.contents.add_section(self.bytes, kind, &header, at)?;
            }
        }
        Ok(Step::Next(next))
    }

    fn trailer(&self, at: u64, next: u64) -> Result<Step, OpenError> {
        if next < self.bytes.length {
            let bytes = self.bytes.length - next;
            let reason = PrefixReason::TrailingBytes { offset: next, bytes };
            return Ok(Step::End(End::Because(reason)));
        }
        Trailer::parse(&self.bytes.read(at, TRAILER_BYTES as u64)?, at)?;
        Ok(Step::End(End::Trailer))
    }
}
