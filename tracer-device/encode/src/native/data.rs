//! Copies the logs of addresses and values into chunks, on the host. Counterpart of `merge::data`.

use warptrace_abi::data::{DataEntry, accesses};
use warptrace_format::LANES;
use warptrace_format::chunk::CHUNK_HEADER_BYTES;

use super::memory::{DeviceMemory, Owned, Words, write_words};
use super::merge::earliest;
use crate::chunks;
use crate::lane_log::{LaneLog, StreamLogs};

/// Copies the entries of a stream that are not in chunks yet, as long as the pool has chunks.
pub(super) fn copy(memory: &DeviceMemory<'_>, Owned { name, account }: Owned<'_>) {
    let launch = memory.launch(name);
    let in_launch = name.track * launch.warps + name.warp;
    let stream = StreamLogs::new(launch, in_launch, name.warp);
    let logs = memory.logs();
    let lanes: Vec<LaneLog> = (0..LANES).map(|lane| LaneLog::read(logs, stream, lane)).collect();
    let mut entries: Vec<Words> = Vec::new();
    for log in &lanes {
        let end = entries.len() + log.start.remaining as usize;
        let mut cursor = log.start;
        while let Some(words) = cursor.seek_words(logs, stream) {
            entries.push(words);
            cursor.advance();
        }
        // Entries missing from a damaged log.
        entries.resize(end, [0; 4]);
    }
    if entries.is_empty() {
        return account.finished = 1;
    }
    if let Some(time) = earliest(lanes.iter().filter_map(|log| log.lost_from)) {
        // Where events were lost, only the upper bits of the time are known.
        entries.push(DataEntry::Cut { time: time & !1 }.to_words());
    }
    let each = memory.data_entries();
    let done = each.saturating_mul(account.chunks as usize).min(entries.len());
    for piece in entries[done..].chunks(each) {
        let Some(chunk) = memory.claim_chunk() else { return chunks::count_waiting(&memory.pool) };
        let number = launch.first_stream + in_launch;
        let recorded = piece.iter().map(|words| accesses(words[1])).sum();
        let (header, payload) = chunk.split_at_mut(CHUNK_HEADER_BYTES as usize);
        let bytes = size_of_val(piece) as u32;
        let words = [name.warp, account.chunks, recorded, bytes, launch.launch, name.track, 0, number];
        write_words(header, &words);
        write_words(payload, piece.as_flattened());
        account.chunks += 1;
        account.attempted = account.attempted.wrapping_add(recorded.into());
        account.recorded = account.recorded.wrapping_add(recorded.into());
    }
    account.finished = 1;
}
