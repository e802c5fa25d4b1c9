//! Classes on the host: what the kernel of `classes` finds.

use std::collections::HashMap;
use std::collections::hash_map::Entry::{Occupied, Vacant};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use warptrace_abi::log::{Entry, LoggedLaunch};
use warptrace_abi::pool::{PARTED, PoolDescriptor};
use warptrace_format::LANES;

use super::EncodeError;
use super::memory::{DeviceMemory, StreamName};
use super::merge::earliest;
use crate::classes::has_classes;
use crate::lane_log::{LaneLog, StreamLogs};
use crate::warp::NEVER;

/// Finds the class of each stream, before [`encode`](super::encode) of the same launches: writes for each into the array
/// of classes which stream stands for its class. On a GPU it is any of them. Here it is the last one, so that tests find code that
/// takes it for the first. The table behind the array is not used, and streams of any length are compared.
///
/// # Safety
/// As for [`encode`](super::encode).
///
/// # Errors
/// If a descriptor contradicts itself or another.
pub unsafe fn find_classes(pool: &PoolDescriptor, launches: &[LoggedLaunch]) -> Result<(), EncodeError> {
    // SAFETY: the caller's promise.
    let memory = unsafe { DeviceMemory::new(pool, launches) }?;
    // By the hashes of their runs. Of two classes with the same hash the second is not kept.
    let mut firsts = HashMap::<u64, (u32, StreamName)>::new();
    let names: Vec<_> = (0..).zip(memory.stream_names()).collect();
    for (number, name) in names.into_iter().rev() {
        let (mut first, (parted, runs)) = (number, runs(&memory, name));
        if let Some(runs) = runs {
            match firsts.entry(BuildHasherDefault::<DefaultHasher>::new().hash_one(&runs)) {
                Occupied(other) => {
                    let (other, name) = *other.get();
                    first = if self::runs(&memory, name).1.as_ref() == Some(&runs) { other } else { number };
                }
                Vacant(free) => drop(free.insert((number, name))),
            }
        }
        // SAFETY: an element of the array (contract of `DeviceMemory::new`), aligned (checked there).
        unsafe { memory.class_array().add(number as usize).write(first | parted) };
    }
    Ok(())
}

/// The track of a stream, and masks and keys of its runs.
type TrackRuns = (u32, Vec<[u32; 2]>);

/// [`PARTED`] if several lanes of a stream have logs, else 0. Then its track, and the mask and the key of each of its
/// entries that holds a run, in the order in which the runs began; `None` if the stream is in no class.
fn runs(memory: &DeviceMemory<'_>, name: StreamName) -> (u32, Option<TrackRuns>) {
    let (logs, launch) = (memory.logs(), memory.launch(name));
    let stream = StreamLogs::new(launch, name.track * launch.warps + name.warp, name.warp);
    if !has_classes(&memory.pool, stream, name.track) {
        return (0, None);
    }
    let mut lanes = (0..LANES).map(|lane| LaneLog::read(logs, stream, lane)).collect::<Vec<_>>();
    if lanes.iter().any(|log| log.lost_from.is_some()) {
        return (0, None);
    }
    lanes.retain(|log| log.start.remaining != 0);
    let parted = if lanes.len() > 1 { PARTED } else { 0 };
    let first_time = |log: &LaneLog| {
        let mut cursor = log.start;
        cursor.seek(logs, stream).map(|entry| entry.time)
    };
    let base = earliest(lanes.iter().filter_map(first_time)).unwrap_or(0);
    let mut runs = Vec::new();
    for log in &lanes {
        let (from, mut cursor) = (runs.len(), log.start);
        while let Some([mask, key, low, high]) = cursor.seek_words(logs, stream) {
            let since = Entry::from_words([mask, key, low, high]).time.wrapping_sub(base).min(NEVER - 1);
            runs.push((since, [mask, key]));
            cursor.advance();
        }
        // A single log is taken as it is.
        if lanes.len() > 1 && !runs[from..].is_sorted_by_key(|(since, _)| *since) {
            return (parted, None);
        }
    }
    if lanes.len() > 1 {
        runs.sort_by_key(|(since, _)| *since);
    }
    let class = (!lanes.is_empty()).then(|| (name.track, runs.into_iter().map(|(_, run)| run).collect()));
    (parted, class)
}
