//! Sections for messages from the host.

use std::io::Write;

use warptrace_format::file::limits::MAX_HOST_LAUNCHES;
use warptrace_format::file::{
    Buffers, HostTimes, LocationCode, LocationInfo, SectionKind, WaitInfo, encode_sites,
};

use super::state::launch_entry;
use super::{TraceWriter, WriteError};
use crate::HostMessage;

/// Buffers of one section: with their names less than its limit of bytes.
const BUFFERS_AT_ONCE: usize = 1 << 13;

impl<W: Write + Send> TraceWriter<W> {
    /// Writes a message from the host, and flushes.
    ///
    /// # Errors
    /// A contradiction to the file's metadata, values that a reader would refuse, more than the format holds,
    /// an I/O error.
    pub fn write_message(&mut self, message: &HostMessage) -> Result<(), WriteError> {
        // The index lists some sections.
        let indexed = match message {
            HostMessage::Additions(_) => Some(SectionKind::Additions),
            HostMessage::Text(_) => Some(SectionKind::Text),
            _ => None,
        };
        self.check_usable(usize::from(indexed.is_some()))?;
        let compression = self.options.compression;
        let sections = match message {
            HostMessage::Additions(additions) => {
                let section = additions.encode_section()?;
                self.launches.add(additions)?;
                [vec![section], code_sections(&additions.locations)].concat()
            }
            HostMessage::Sites(sites) if sites.is_empty() => Vec::new(),
            HostMessage::Sites(sites) => vec![encode_sites(sites)?],
            HostMessage::Buffers(Buffers { is_complete, buffers }) => {
                // An empty section says that nothing is known, or that there are none.
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
                // In each section as many launches as it holds; readings in the first.
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

/// Parts of at most `most` values; one of nothing if there are none.
fn parts<T>(values: &[T], most: usize) -> impl Iterator<Item = &[T]> {
    let none = values.is_empty().then_some(values);
    values.chunks(most).chain(none)
}

/// Sections about what the code has at locations, and about waits there, as far as it is known.
pub(super) fn code_sections(locations: &[LocationInfo]) -> Vec<Vec<u8>> {
    LocationCode::encode_section(locations).into_iter().chain(WaitInfo::encode_sections(locations)).collect()
}
