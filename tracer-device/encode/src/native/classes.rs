//! Classes of streams, on the host. Counterpart of the kernel in `classes`.

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

/// Finds the class of each stream, before [`encode`](super::encode) of the same launches: writes for each
/// stream which stream represents its class. On a GPU that is any stream of the class. Here it is the last
/// one, so that tests detect code that assumes the first. The table after the array is not used, and streams
/// of any length are compared.
///
/// # Safety
/// As for [`encode`](super::encode).
///
/// # Errors
/// If a descriptor is invalid or contradicts another.
pub unsafe fn find_classes(pool: &PoolDescriptor, launches: &[LoggedLaunch]) -> Result<(), EncodeError> {
    // SAFETY: guaranteed by the caller.
    let memory = unsafe { DeviceMemory::new(pool, launches) }?;
    // Keyed by the hash of their runs. On a hash collision, only the first class is kept.
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

/// The track of a stream, and the mask and key of each run.
type TrackRuns = (u32, Vec<[u32; 2]>);

/// Returns [`PARTED`] if several lanes of a stream have logs, otherwise 0; and the track with the mask and
/// key of each run, ordered by start time. The second value is `None` if the stream belongs to no class.
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
        // A single log keeps its order.
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
