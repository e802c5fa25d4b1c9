use std::io::Write;

use warptrace_format::file::limits::MAX_HOST_LAUNCHES;
use warptrace_format::file::{
    Buffers, HostTimes, LocationCode, LocationInfo, SectionKind, WaitInfo, encode_sites,
};

use super::state::launch_entry;
use super::{TraceWriter, WriteError};
use crate::HostMessage;

/// Buffers per section. With their names, they stay below the section's byte limit.
const BUFFERS_AT_ONCE: usize = 1 << 13;

impl<W: Write + Send> TraceWriter<W> {
    /// Writes a message from the host, and flushes. Fails if the message contradicts the file's metadata,
    /// holds values that a reader refuses, exceeds a limit of the format, or writing fails.
    pub fn write_message(&mut self, message: &HostMessage) -> Result<(), WriteError> {
        // The index lists these sections.
        let indexed = match message {
            HostMessage::Additions(_) => Some(SectionKind::Additions),
            HostMessage::Text(_) => Some(SectionKind::Text),
            _ => None,
        };
        self.check_usable(usize::from(indexed.is_some()))?;
        let compression = self.encoder.compression;
        let sections = match message {
            HostMessage::Additions(additions) => {
                let section = additions.encode_section()?;
                self.launches.add(additions)?;
                [vec![section], code_sections(&additions.locations)].concat()
            }
            HostMessage::Sites(sites) if sites.is_empty() => Vec::new(),
            HostMessage::Sites(sites) => vec![encode_sites(sites)?],
            HostMessage::Buffers(Buffers { is_complete, buffers }) => {
                // An empty section states that nothing is known, or that no buffers exist.
                let parts = parts(buffers, BUFFERS_AT_ONCE);
                let of = |part: &[_]| Buffers { is_complete: *is_complete, buffers: part.to_vec() };
                parts.map(|part| of(part).encode_section()).collect::<Result<_, _>>()?
            }
            HostMessage::Text(text) => vec![text.encode_section(compression)?],
            HostMessage::Labels(labels) => {
                let labels: Vec<_> = labels.iter().map(|(launch, label)| (*launch, &**label)).collect();
                self.labels.encode_sections(&labels)
            }
            HostMessage::Stacks(stacks) => self.stacks.encode_sections(stacks),
            HostMessage::Unrecorded(unrecorded) => unrecorded.encode_sections(),
            HostMessage::Times(times) => {
                let mut readings = times.readings.clone();
                // Launches are split over sections; the first one has the readings.
                let parts = parts(&times.launches, MAX_HOST_LAUNCHES as usize);
                let parts = parts.map(|launches| HostTimes {
                    launches: launches.to_vec(),
                    readings: std::mem::take(&mut readings),
                });
                let parts = parts.filter(|part| !part.is_empty());
                parts.map(|part| part.encode_section(compression)).collect::<Result<_, _>>()?
            }
        };
        let (at, length) = (self.summary.bytes, sections.first().map_or(0, Vec::len) as u64);
        sections.iter().try_for_each(|section| self.put(section))?;
        self.index.extend(indexed.map(|kind| launch_entry(kind, 0, at, length)));
        self.flush()
    }
}

/// Splits values into parts of at most `most`; returns one empty part if `values` is empty.
fn parts<T>(values: &[T], most: usize) -> impl Iterator<Item = &[T]> {
    let none = values.is_empty().then_some(values);
    values.chunks(most).chain(none)
}

/// Returns sections about the code and the waits at locations, if known.
pub(super) fn code_sections(locations: &[LocationInfo]) -> Vec<Vec<u8>> {
    LocationCode::encode_section(locations).into_iter().chain(WaitInfo::encode_sections(locations)).collect()
}
