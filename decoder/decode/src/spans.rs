//! Spans: where and when warps ran.

use warptrace_format::file::{DeviceKind, IndexEntry, SECTION_HEADER_BYTES, SectionKind, Tie, decode_spans};
use warptrace_format::span::{Axis, WarpSpan};

use crate::error::DecodeError;
use crate::file::TraceFile;
use crate::times::records;

impl TraceFile {
    /// Returns true if spans of warps were recorded.
    pub fn has_spans(&self) -> bool {
        records(self.metadata(), SectionKind::Spans)
    }

    /// Returns the warps of a launch that have a span, in ascending order, each with its span. Leaves out
    /// warps that were not chosen and warps without data. A missing or damaged section yields an error in
    /// place of its warps. Memory: one section.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let trace = warptrace_decoder::TraceFile::open("bfs.wtrc")?;
    /// for found in trace.warp_spans(1) {
    ///     let (warp, span) = found?;
    ///     println!("warp {warp} ran on {:?} for {:?} ns", span.sm(), span.nanoseconds());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn warp_spans(&self, launch: u32) -> WarpSpans<'_> {
        let sections = if self.has_spans() { self.account_sections(launch, 0) } else { &[] };
        WarpSpans { file: self, sections: sections.iter(), next: 0, spans: Vec::new().into_iter(), first: 0 }
    }

    /// Maps the times of a warp's runs ([`WarpItem::begin`](crate::WarpItem::begin)) to nanoseconds. `first`
    /// is the time of its first run. Returns `None` if the span is incomplete.
    ///
    /// ```no_run
    /// # use warptrace_format::span::WarpSpan;
    /// # fn show(trace: &warptrace_decoder::TraceFile, span: WarpSpan, begins: &[u64]) {
    /// if let Some(axis) = trace.axis(&span, begins[0]) {
    ///     begins.iter().for_each(|begin| println!("{} ns", axis.nanoseconds(*begin)));
    /// }
    /// # }
    /// ```
    pub fn axis(&self, span: &WarpSpan, first: u64) -> Option<Axis> {
        // Times have 32 bits. A unit is 16 cycles, on the simulator 1 cycle.
        let bits = if self.metadata().device.kind == DeviceKind::Simulator { 32 } else { 36 };
        span.axis(first, bits)
    }

    pub(crate) fn load_spans(&self, accounts: &IndexEntry) -> Result<Vec<WarpSpan>, DecodeError> {
        let none = || DecodeError::NoSpans { accounts_offset: accounts.offset };
        let Behind { entry, version, tie, body_at } =
            self.section_behind(accounts, SectionKind::Spans)?.ok_or_else(none)?;
        let warps = (accounts.last_warp - accounts.first_warp).saturating_add(1);
        self.work.spend_spans(warps)?;
        Ok(decode_spans((version, &self.load_body(&entry)?), body_at, tie, warps)?)
    }

    pub(crate) fn section_behind(
        &self,
        before: &IndexEntry,
        kind: SectionKind,
    ) -> Result<Option<Behind>, DecodeError> {
        let offset = before.end();
        let left = self.length.saturating_sub(offset);
        if left < SECTION_HEADER_BYTES as u64 {
            return Ok(None);
        }
        let header = self.header_at(offset)?;
        if header.kind(offset)? != Some(kind) || header.total_bytes() > left {
            return Ok(None);
        }
        let entry = IndexEntry { kind, offset, length: header.total_bytes(), ..*before };
        let tie = Tie::to(&self.header_at(before.offset)?);
        let body_at = offset.saturating_add(SECTION_HEADER_BYTES as u64);
        Ok(Some(Behind { entry, version: header.version, tie, body_at }))
    }
}

/// A section that directly follows the section to which it belongs.
pub(crate) struct Behind {
    pub(crate) entry: IndexEntry,
    pub(crate) version: u16,
    pub(crate) tie: Tie,
    pub(crate) body_at: u64,
}

/// The spans of a launch's warps; see [`TraceFile::warp_spans`].
#[derive(Debug)]
pub struct WarpSpans<'a> {
    file: &'a TraceFile,
    sections: std::slice::Iter<'a, IndexEntry>,
    /// Warps before this one are done: returned, or in a section that could not be read.
    next: u32,
    /// Remaining spans of the current section, and the warp of the next one.
    spans: std::vec::IntoIter<WarpSpan>,
    first: u32,
}

impl<'a> WarpSpans<'a> {
    /// Skips sections that cannot be read. The only remaining error is [`DecodeError::TooMuchWork`].
    pub fn readable(self) -> impl Iterator<Item = Result<(u32, WarpSpan), DecodeError>> + use<'a> {
        self.filter(|found| matches!(found, Ok(_) | Err(DecodeError::TooMuchWork { .. })))
    }
}

impl Iterator for WarpSpans<'_> {
    type Item = Result<(u32, WarpSpan), DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            for span in self.spans.by_ref() {
                let warp = self.first;
                self.first = warp.saturating_add(1);
                // If sections overlap, the first one counts.
                if warp >= self.next {
                    self.next = self.first;
                    if span.has_begun() {
                        return Some(Ok((warp, span)));
                    }
                }
            }
            let section = self.sections.next()?;
            match self.file.load_spans(section) {
                Ok(spans) => (self.spans, self.first) = (spans.into_iter(), section.first_warp),
                Err(error) => {
                    self.next = self.next.max(section.last_warp.saturating_add(1));
                    return Some(Err(error));
                }
            }
        }
    }
}
