//! Memory that kernels could reach: which buffer an address belongs to.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use warptrace_format::data::LaneRun;
use warptrace_format::file::{BufferInfo, Buffers};

use crate::file::TraceFile;
use crate::shown;

/// The buffers that a file tells of.
#[derive(Clone, Debug)]
pub(crate) struct KnownBuffers {
    /// By number, which bounds how many there are.
    all: BTreeMap<u32, BufferInfo>,
    is_complete: bool,
}

impl Default for KnownBuffers {
    fn default() -> Self {
        Self { all: BTreeMap::new(), is_complete: true }
    }
}

impl KnownBuffers {
    /// Adds those of a section. Of several with one number the last counts.
    pub(crate) fn add(&mut self, part: Buffers) {
        self.is_complete &= part.is_complete;
        for mut buffer in part.buffers {
            shown::buffer(&mut buffer);
            self.all.insert(buffer.number, buffer);
        }
    }

    /// Notes that some are not known.
    pub(crate) fn lack(&mut self) {
        self.is_complete = false;
    }
}

impl TraceFile {
    /// Returns the buffers in the order of their numbers: memory that kernels could reach by global
    /// addresses; `None` if the file does not tell of any.
    #[must_use]
    pub fn buffers(&self) -> Option<impl ExactSizeIterator<Item = &BufferInfo>> {
        self.buffers.as_ref().map(|known| known.all.values())
    }

    /// The buffer with this number.
    #[must_use]
    pub fn buffer(&self, number: u32) -> Option<&BufferInfo> {
        self.buffers.as_ref()?.all.get(&number)
    }

    /// Returns whether the file has all memory that kernels could reach by global addresses: then an address
    /// that is in none of its buffers was out of bounds. A file that breaks off has those of the launches
    /// that it has.
    #[must_use]
    pub fn has_all_buffers(&self) -> bool {
        self.buffers.as_ref().is_some_and(|known| known.is_complete)
    }
}

/// Returns the first and the last byte that accesses of a run touch, of `bytes` bytes each; `None` if addresses
/// wrap around.
#[must_use]
pub fn extent(run: LaneRun, bytes: u64) -> Option<(u64, u64)> {
    let way = i128::from(run.step) * i128::from(run.count.saturating_sub(1));
    let last = u64::try_from(i128::from(run.base) + way).ok()?;
    Some((run.base.min(last), run.base.max(last).checked_add(bytes.max(1) - 1)?))
}

/// In which launch a buffer begins or ends, whether it begins, and its number.
type Change = (u32, bool, u32);

/// Where the buffers of a trace lie in one launch after the other.
#[derive(Clone, Debug)]
pub struct BufferMap<'t> {
    /// What happens to buffers, the last first.
    changes: Vec<(Reverse<Change>, &'t BufferInfo)>,
    /// How many of these are still to come.
    left: usize,
    /// Those that are there, by address. None overlaps another.
    live: BTreeMap<u64, &'t BufferInfo>,
    launch: u32,
    is_complete: bool,
}

/// Where an address lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressPlace<'t> {
    /// In a buffer, and how many bytes behind its first one.
    In(&'t BufferInfo, u64),
    /// In none, although all are known.
    Outside,
    /// In none that is known.
    Unknown,
}

impl<'t> BufferMap<'t> {
    /// Begins before the first launch; `None` if the trace does not tell of buffers.
    ///
    /// Memory: 40 bytes for each buffer.
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

    /// Goes to a launch: what [`at`](Self::at) says is of it. Launches in ascending order are one pass over
    /// the buffers.
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
                // What comes later counts: what was there is no more.
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

    /// The last buffer that begins at an address or before.
    fn before(&self, address: u64) -> Option<&'t BufferInfo> {
        self.live.range(..=address).next_back().map(|(_, buffer)| *buffer)
    }

    /// Returns where an address lies.
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

    /// Returns the buffer in which all accesses of a run are, of `bytes` bytes each.
    #[must_use]
    pub fn of_run(&self, run: LaneRun, bytes: u64) -> Option<&'t BufferInfo> {
        let (low, high) = extent(run, bytes)?;
        match self.at(low) {
            AddressPlace::In(buffer, offset) if high - low < buffer.bytes - offset => Some(buffer),
            _ => None,
        }
    }

    /// Counts the accesses of a run, of `bytes` bytes each, that are in no buffer, or go beyond one, although
    /// all buffers are known.
    #[must_use]
    pub fn outside(&self, run: LaneRun, bytes: u64) -> u32 {
        if !self.is_complete || self.of_run(run, bytes).is_some() {
            return 0;
        }
        let is_outside = |number: &u32| {
            self.of_run(LaneRun { base: run.nth(*number), step: 0, count: 1 }, bytes).is_none()
        };
        // At most 1,023.
        (0..run.count).filter(is_outside).map(|_| 1).sum()
    }

    /// Returns the buffer that is nearest to an address that is in none, and by how many bytes the address is
    /// behind its last one (positive, from 1 on), or before its first one (negative).
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

/// The address behind the last byte; where that is 2^64, the last one.
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

    /// The number of the buffer at an address.
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
            // The file does not say that the one before has gone.
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
