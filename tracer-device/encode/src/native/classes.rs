//! Classes on the host: what the kernel of `classes` finds.

use std::collections::HashMap;
use std::collections::hash_map::Entry::{Occupied, Vacant};
use std::hash::{DefaultHasher, Hash, Hasher};

use warptrace_abi::log::LoggedLaunch;
use warptrace_abi::pool::PoolDescriptor;
use warptrace_format::LANES;

use super::EncodeError;
use super::memory::{DeviceMemory, LogEntries, StreamName};
use crate::classes::has_classes;
use crate::lane_log::{Cursor, LaneLog, LogMemory, StreamLogs, follow};

/// Finds the class of each stream, before [`encode`](super::encode) of the same launches: writes the first stream of
/// its class for each into the array of classes. The table behind that is not used.
///
/// # Safety
/// As for [`encode`](super::encode).
///
/// # Errors
/// If a descriptor contradicts itself or another.
pub unsafe fn find_classes(pool: &PoolDescriptor, launches: &[LoggedLaunch]) -> Result<(), EncodeError> {
    // SAFETY: the caller's promise.
    let memory = unsafe { DeviceMemory::new(pool, launches) }?;
    // By the hashes of their entries. Of two classes with the same hash the second is not kept.
    let mut firsts = HashMap::<u64, (u32, SingleLog<'_>)>::new();
    for (number, name) in (0..).zip(memory.stream_names()) {
        let mut first = number;
        if let Some(log) = SingleLog::of(&memory, name) {
            match firsts.entry(log.hash()) {
                Occupied(other) if other.get().1.equals(&log) => first = other.get().0,
                Occupied(_) => {}
                Vacant(free) => drop(free.insert((number, log))),
            }
        }
        // SAFETY: an element of the array (contract of `DeviceMemory::new`), aligned (checked there).
        unsafe { memory.class_array().add(number as usize).write(first) };
    }
    Ok(())
}

/// The log of a stream in which one lane has one.
struct SingleLog<'a> {
    memory: LogEntries<'a>,
    stream: StreamLogs,
    track: u32,
    start: Cursor,
}

impl<'a> SingleLog<'a> {
    fn of(memory: &'a DeviceMemory<'_>, name: StreamName) -> Option<Self> {
        let launch = memory.launch(name);
        let stream = StreamLogs::new(launch, name.track * launch.warps + name.warp, name.warp);
        if !has_classes(&memory.pool, stream, name.track) {
            return None;
        }
        let mut start = None;
        for lane in 0..LANES {
            let log = LaneLog::read(memory.logs(), stream, lane);
            if log.lost_from.is_some() || log.start.remaining != 0 && start.replace(log.start).is_some() {
                return None;
            }
        }
        Some(Self { memory: memory.logs(), stream, track: name.track, start: start? })
    }

    /// The mask and the key of each entry.
    fn entries(&self) -> impl Iterator<Item = [u32; 2]> {
        let mut cursor = self.start;
        std::iter::from_fn(move || {
            if cursor.remaining != 0 && cursor.index == cursor.link {
                cursor.index = follow(self.memory, cursor.link, self.stream)?;
                cursor.link = cursor.index + (self.stream.segment_entries - 1);
            }
            let [mask, key, ..] = (cursor.remaining != 0).then(|| self.memory.entry(cursor.index))?;
            cursor.advance();
            Some([mask, key])
        })
    }

    fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.track.hash(&mut hasher);
        self.entries().for_each(|entry| entry.hash(&mut hasher));
        hasher.finish()
    }

    fn equals(&self, other: &Self) -> bool {
        self.track == other.track && self.entries().eq(other.entries())
    }
}
