//! Memory that kernels could reach, and the buffer of an address.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use warptrace_format::data::LaneRun;
use warptrace_format::file::{BufferInfo, Buffers};

use crate::file::TraceFile;
use crate::shown;

#[derive(Clone, Debug)]
pub(crate) struct KnownBuffers {
    /// By number. The format limits the numbers.
    all: BTreeMap<u32, BufferInfo>,
    is_complete: bool,
}

impl Default for KnownBuffers {
    fn default() -> Self {
        Self { all: BTreeMap::new(), is_complete: true }
    }
}

impl KnownBuffers {
    /// Adds the buffers of a section. For a repeated number, the last entry counts.
    pub(crate) fn add(&mut self, part: Buffers) {
        self.is_complete &= part.is_complete;
        for mut buffer in part.buffers {
            shown::buffer(&mut buffer);
            self.all.insert(buffer.number, buffer);
        }
    }

    pub(crate) fn lack(&mut self) {
        self.is_complete = false;
    }
}

impl TraceFile {
    /// Returns the buffers, in the order of their numbers: memory that kernels could reach by global
    /// addresses. Returns `None` if the file has no section of buffers.
    #[must_use]
    pub fn buffers(&self) -> Option<impl ExactSizeIterator<Item = &BufferInfo>> {
        self.buffers.as_ref().map(|known| known.all.values())
    }

    /// Returns the buffer with this number.
    #[must_use]
    pub fn buffer(&self, number: u32) -> Option<&BufferInfo> {
        self.buffers.as_ref()?.all.get(&number)
    }

    /// Returns true if the file lists all memory that kernels could reach by global addresses: addresses
    /// outside its buffers were out of bounds. A truncated file has the buffers of its launches.
    #[must_use]
    pub fn has_all_buffers(&self) -> bool {
        self.buffers.as_ref().is_some_and(|known| known.is_complete)
    }
}

/// Returns the first and the last byte of a run's accesses of `bytes` bytes each; `None` if they wrap around.
#[must_use]
pub fn extent(run: LaneRun, bytes: u64) -> Option<(u64, u64)> {
    let way = i128::from(run.step) * i128::from(run.count.saturating_sub(1));
    let last = u64::try_from(i128::from(run.base) + way).ok()?;
    Some((run.base.min(last), run.base.max(last).checked_add(bytes.max(1) - 1)?))
}

/// Launch at which a buffer begins or ends, whether it begins, and its number.
type Change = (u32, bool, u32);

/// The buffers of a trace, launch by launch.
#[derive(Clone, Debug)]
pub struct BufferMap<'t> {
    /// Begins and ends of buffers, the last first.
    changes: Vec<(Reverse<Change>, &'t BufferInfo)>,
    left: usize,
    /// Buffers of the current launch, by address. They do not overlap.
    live: BTreeMap<u64, &'t BufferInfo>,
    launch: u32,
    is_complete: bool,
}

/// The place of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressPlace<'t> {
    /// In a buffer, at this offset in bytes.
    In(&'t BufferInfo, u64),
    /// Outside all buffers, and all buffers are known.
    Outside,
    /// Outside the known buffers; some are unknown.
    Unknown,
}

impl<'t> BufferMap<'t> {
    /// Makes a map at the first launch; `None` if the trace has no buffers. Memory: 24 bytes for each begin
    /// and end of a buffer, and 16 for each live buffer.
    #[must_use]
    pub fn of_trace(trace: &'t TraceFile) -> Option<Self> {
        let known = trace.buffers.as_ref()?;
        let mut found = Self::new(known.all.values(), trace.has_all_buffers());
        found.go_to(0);
        Some(found)
    }

    fn new(buffers: impl Iterator<Item = &'t BufferInfo>, is_complete: bool) -> Self {
        let mut changes = Vec::new();
        for buffer in buffers.filter(|buffer| buffer.end != Some(buffer.first)) {
            changes.push((Reverse((buffer.first, true, buffer.number)), buffer));
            changes.extend(buffer.end.map(|end| (Reverse((end, false, buffer.number)), buffer)));
        }
        changes.sort_unstable_by_key(|(when, _)| *when);
        let left = changes.len();
        Self { changes, left, live: BTreeMap::new(), launch: 0, is_complete }
    }

    /// Moves to a launch; queries then refer to it. Ascending launches take one pass over the buffers.
    pub fn go_to(&mut self, launch: u32) {
        if launch < self.launch {
            self.left = self.changes.len();
            self.live.clear();
        }
        self.launch = launch;
        while let Some(&(Reverse((when, begins, _)), buffer)) = self.changes[..self.left].last()
            && when <= launch
        {
            self.left -= 1;
            if begins {
                // A later buffer replaces all buffers that it overlaps.
                while let Some(over) = self.before(buffer.address.saturating_add(buffer.bytes - 1))
                    && (over.address >= buffer.address || buffer.address - over.address < over.bytes)
                {
                    self.live.remove(&over.address);
                }
                self.live.insert(buffer.address, buffer);
            } else if self.live.get(&buffer.address).is_some_and(|live| live.number == buffer.number) {
                self.live.remove(&buffer.address);
            }
        }
    }

    fn before(&self, address: u64) -> Option<&'t BufferInfo> {
        self.live.range(..=address).next_back().map(|(_, buffer)| *buffer)
    }

    /// Returns the place of an address.
    #[must_use]
    pub fn at(&self, address: u64) -> AddressPlace<'t> {
        match self.before(address) {
            Some(buffer) if address - buffer.address < buffer.bytes => {
                AddressPlace::In(buffer, address - buffer.address)
            }
            _ if self.is_complete => AddressPlace::Outside,
            _ => AddressPlace::Unknown,
        }
    }

    /// Returns the buffer that contains all accesses of a run, of `bytes` bytes each.
    #[must_use]
    pub fn of_run(&self, run: LaneRun, bytes: u64) -> Option<&'t BufferInfo> {
        let (low, high) = extent(run, bytes)?;
        match self.at(low) {
            AddressPlace::In(buffer, offset) if high - low < buffer.bytes - offset => Some(buffer),
            _ => None,
        }
    }

    /// Counts the accesses of a run, of `bytes` bytes each, that are not entirely inside one buffer. Returns
    /// 0 if not all buffers are known.
    #[must_use]
    pub fn outside(&self, run: LaneRun, bytes: u64) -> u32 {
        if !self.is_complete || self.of_run(run, bytes).is_some() {
            return 0;
        }
        let is_outside = |number: &u32| {
            self.of_run(LaneRun { base: run.nth(*number), step: 0, count: 1 }, bytes).is_none()
        };
        // At most 1,023 accesses.
        (0..run.count).filter(is_outside).map(|_| 1).sum()
    }

    /// Returns the buffer nearest to an address outside all buffers, and the distance in bytes: positive
    /// (from 1) after the last byte of the buffer, negative before its first.
    #[must_use]
    pub fn nearest(&self, address: u64) -> Option<(&'t BufferInfo, i128)> {
        let before =
            self.before(address).map(|found| (found, i128::from(address) - i128::from(end(found)) + 1));
        let after = self
            .live
            .range(address..)
            .next()
            .map(|(at, found)| (*found, i128::from(address) - i128::from(*at)));
        before.into_iter().chain(after).min_by_key(|(_, distance)| distance.abs())
    }
}

const fn end(buffer: &BufferInfo) -> u64 {
    buffer.address.saturating_add(buffer.bytes)
}

#[cfg(test)]
mod tests {
    use warptrace_format::file::BufferKind;

    use super::*;

    fn buffer(number: u32, address: u64, bytes: u64, first: u32, end: Option<u32>) -> BufferInfo {
        let (kind, name) = (BufferKind::Device, String::new());
        BufferInfo { number, address, bytes, kind, name, first, end }
    }

    fn map(buffers: &[BufferInfo], is_complete: bool) -> BufferMap<'_> {
        let mut map = BufferMap::new(buffers.iter(), is_complete);
        map.go_to(0);
        map
    }

    fn number(map: &BufferMap<'_>, address: u64) -> Option<u32> {
        match map.at(address) {
            AddressPlace::In(buffer, offset) => {
                assert_eq!(buffer.address + offset, address);
                Some(buffer.number)
            }
            place => {
                assert_eq!(
                    place,
                    if map.is_complete { AddressPlace::Outside } else { AddressPlace::Unknown }
                );
                None
            }
        }
    }

    #[test]
    fn an_address_belongs_to_what_lives_there_in_its_launch() {
        let buffers = [
            buffer(0, 0x1000, 16, 0, Some(2)),
            buffer(1, 0x1000, 8, 2, Some(4)),
            buffer(2, 0x1000, 64, 4, Some(4)),
            buffer(3, 0x1000, 16, 5, None),
            buffer(4, 0x100f, 2, 7, None),
            buffer(5, u64::MAX - 1, 2, 0, None),
        ];
        let mut map = map(&buffers, true);
        let found = |map: &mut BufferMap<'_>, launch, address| {
            map.go_to(launch);
            number(map, address)
        };
        for launch in [0, 1, 2, 3, 4, 5, 6, 7, 9, 0, 3, 6] {
            let expected = match launch {
                0 | 1 => [Some(0), Some(0), None],
                2 | 3 => [Some(1), None, None],
                4 => [None; 3],
                5 | 6 => [Some(3), Some(3), None],
                _ => [None, Some(4), Some(4)],
            };
            let at = [0x1000, 0x100f, 0x1010].map(|address| found(&mut map, launch, address));
            assert_eq!(at, expected, "launch {launch}");
            assert_eq!(found(&mut map, launch, u64::MAX), Some(5));
        }
    }

    #[test]
    fn the_nearest_buffer_is_on_either_side() {
        let buffers = [buffer(0, 0x1000, 16, 0, None), buffer(1, 0x2000, 16, 0, None)];
        let map = map(&buffers, false);
        let nearest = |address| map.nearest(address).map(|(buffer, distance)| (buffer.number, distance));
        assert_eq!(nearest(0x1010), Some((0, 1)));
        assert_eq!(nearest(0x1fff), Some((1, -1)));
        assert_eq!(nearest(0), Some((0, -0x1000)));
        assert_eq!(nearest(u64::MAX), Some((1, i128::from(u64::MAX) - 0x200f)));
        assert_eq!(number(&map, 0x1010), None);
    }

    #[test]
    fn extents_do_not_wrap() {
        let run = |base, step, count| LaneRun { base, step, count };
        assert_eq!(extent(run(100, -4, 3), 4), Some((92, 103)));
        assert_eq!(extent(run(4, -4, 3), 4), None);
        assert_eq!(extent(run(u64::MAX - 3, 0, 1), 4), Some((u64::MAX - 3, u64::MAX)));
        assert_eq!(extent(run(u64::MAX - 2, 0, 1), 4), None);
    }
}
