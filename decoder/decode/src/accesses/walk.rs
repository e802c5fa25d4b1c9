//! Walks over a launch's sections of addresses and values. Reads each section once.
//!
//! ```text
//! sections by first warp ── next sections, unpacked ── pieces by warp ── warps that no later section has
//!                           in parallel                held
//! ```
//!
//! Sections overlap in their warps if the recorder drained the warps in another order. The walk holds the
//! pieces of warps that a later section may also have. If the held pieces exceed [`HELD_BYTES`], the walk
//! drops the highest warps. It reads their sections again later, like [`crate::window`] does for events.

use std::collections::BTreeMap;
use std::ops::Range;

use rayon::prelude::*;
use warptrace_format::file::IndexEntry;
use warptrace_format::file::data::{Group, Piece, PieceGroups, SiteGroups};

use crate::error::DecodeError;
use crate::file::TraceFile;

/// Maximum bytes of held pieces; a single warp may exceed it.
const HELD_BYTES: usize = 256 << 20;
pub(super) const WARP_ENTRIES: usize = 1 << 24;

/// A piece of a warp's stream: offset of its section, its first chunk, number of chunks, contents.
pub(super) type Held = (u64, u32, u32, PieceGroups);

#[derive(Debug, Default)]
pub(super) struct OfWarp {
    pub(super) pieces: Vec<Held>,
    /// Groups and runs. If there are more than a warp may have, `pieces` is empty.
    pub(super) entries: usize,
    bytes: usize,
}

/// A warp with all its pieces; or warps whose section cannot be read, and the error.
pub(super) type FoundWarps = (Range<u32>, Result<OfWarp, DecodeError>);

pub(super) struct Walk<'a> {
    trace: &'a TraceFile,
    /// Sections that have some of the warps, by first warp; `read` of them have been read.
    sections: Vec<IndexEntry>,
    read: usize,
    rest: Range<u32>,
    /// Warps from here on were dropped and come later.
    end: u32,
    held: BTreeMap<u32, OfWarp>,
    bytes: usize,
    most_bytes: usize,
    most_entries: usize,
}

impl<'a> Walk<'a> {
    pub(super) fn new(trace: &'a TraceFile, launch: u32, warps: Range<u32>) -> Self {
        let mut sections = trace.frames(launch, trace.data_track()).to_vec();
        sections.retain(|section| section.first_warp < warps.end && section.last_warp >= warps.start);
        Self {
            trace,
            sections,
            read: 0,
            end: warps.end,
            rest: warps,
            held: BTreeMap::new(),
            bytes: 0,
            most_bytes: HELD_BYTES,
            most_entries: WARP_ENTRIES,
        }
    }

    #[cfg(test)]
    pub(super) fn with_bounds(self, most_bytes: usize, most_entries: usize) -> Self {
        Self { most_bytes, most_entries, ..self }
    }

    pub(super) const fn most_entries(&self) -> usize {
        self.most_entries
    }

    /// Returns the next warps, at least one; `None` after the last. Leaves out warps without accesses.
    pub(super) fn next_warps(&mut self) -> Option<Vec<FoundWarps>> {
        let mut found = Vec::new();
        while found.is_empty() && !self.rest.is_empty() && self.read < self.sections.len() {
            self.read_more(&mut found);
            let next = self.sections.get(self.read).map_or(self.end, |section| section.first_warp);
            self.give(next.min(self.end), &mut found);
            if next >= self.end {
                self.begin_again();
            }
        }
        (!found.is_empty()).then_some(found)
    }

    fn read_more(&mut self, found: &mut Vec<FoundWarps>) {
        let next = self.sections[self.read..].iter().take(rayon::current_num_threads());
        let next: Vec<IndexEntry> =
            next.take_while(|section| section.first_warp < self.end).copied().collect();
        self.read += next.len();
        let load = |section: &IndexEntry| self.trace.load_data(section);
        let loaded: Vec<_> = next.par_iter().with_max_len(1).map(load).collect();
        for (section, pieces) in next.into_iter().zip(loaded) {
            match pieces {
                Ok(pieces) => pieces.into_iter().for_each(|piece| self.hold(section.offset, piece)),
                Err(error) => {
                    self.give(section.first_warp, found);
                    let end = self.rest.end.min(section.last_warp.saturating_add(1)).max(self.rest.start);
                    found.push((self.rest.start.max(section.first_warp)..end, Err(error)));
                    // These warps are incomplete: drop their other pieces.
                    self.rest.start = end;
                    let others = self.held.split_off(&end);
                    std::mem::replace(&mut self.held, others).values().for_each(|of| self.bytes -= of.bytes);
                }
            }
        }
    }

    fn hold(&mut self, offset: u64, Piece { warp, sequence, chunks, groups }: Piece) {
        if warp < self.rest.start || warp >= self.end {
            return;
        }
        let bytes = bytes(&groups);
        let of_warp = self.held.entry(warp).or_default();
        of_warp.entries += groups.sites.iter().map(SiteGroups::entries).sum::<usize>();
        of_warp.bytes += bytes;
        of_warp.pieces.push((offset, sequence, chunks, groups));
        self.bytes += bytes;
        if of_warp.entries > self.most_entries {
            of_warp.pieces = Vec::new();
            self.bytes -= std::mem::take(&mut of_warp.bytes);
        }
        while self.bytes > self.most_bytes
            && self.held.len() > 1
            && let Some((warp, of_warp)) = self.held.pop_last()
        {
            self.bytes -= of_warp.bytes;
            self.end = warp;
        }
    }

    fn give(&mut self, end: u32, found: &mut Vec<FoundWarps>) {
        let others = self.held.split_off(&end);
        for (warp, of_warp) in std::mem::replace(&mut self.held, others) {
            self.bytes -= of_warp.bytes;
            found.push((warp..warp + 1, Ok(of_warp)));
        }
    }

    /// Restarts at the first dropped warp, if any.
    fn begin_again(&mut self) {
        self.rest.start = self.rest.start.max(self.end);
        self.end = self.rest.end;
        self.read = 0;
        self.sections.retain(|section| section.last_warp >= self.rest.start);
    }
}

fn bytes(groups: &PieceGroups) -> usize {
    let of_site = |site: &SiteGroups| {
        let (groups, runs) = (size_of_val(&site.groups[..]), size_of_val(&site.runs[..]));
        size_of::<SiteGroups>() + groups + runs + size_of_val(&site.loose[..])
    };
    size_of::<(Held, Group)>() + groups.sites.iter().map(of_site).sum::<usize>()
}

#[cfg(test)]
mod tests;
