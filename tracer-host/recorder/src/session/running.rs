//! Launches that have not ended, or failed: their records so far, and the positions of their warps.
//!
//! Their logs are copied to the host, terminated, merged and encoded there. No kernel is launched: a kernel
//! that never ends may leave no space for another one, and after a failed kernel none runs. Section "Kernels
//! that run" of [`warptrace_abi::log`] describes the logs of a running kernel.

mod logs;

use std::collections::BTreeMap;
use std::io::Write;
use std::mem::offset_of;

use warptrace_abi::log::{ENTRY_BYTES, LOG_ALIGNMENT};
use warptrace_abi::pool::{Claims, PoolDescriptor};
use warptrace_format::account::WarpAccount;
use warptrace_format::codec::CodecSpec;
use warptrace_format::file::limits::{MAX_EARLY_ENDS, MAX_WARP_RANGES};
use warptrace_format::file::{EarlyEnd, LanesAt, LaunchInfo, WarpsAt};
use warptrace_format::span::WarpSpan;

use self::logs::Logs;
use super::SessionError;
use super::drain::{self, DrainCost};
use super::ledger::Job;
use super::pool::Filled;
use super::worker::{Drained, Worker};
use crate::{Device, MemoryType, SimDevice, SimOptions};

/// An arena in which some launches may not have ended.
#[derive(Clone, Debug)]
pub(super) struct Left {
    /// The arena with all of its launches, as if they had ended.
    pub(super) filled: Filled,
    pub(super) running: Vec<LaunchInfo>,
    /// Launches without logs, to be written with the arena.
    pub(super) plain: Vec<LaunchInfo>,
    /// Whether part of the arena may already be in the file.
    pub(super) is_drained: bool,
}

/// Maximum chunks in host memory before they are written.
const MOST_CHUNKS: u32 = 1 << 16;
/// Minimum entries for merged runs on the host.
const LEAST_MERGED: u32 = 1 << 16;

pub(super) struct Rest {
    pub(super) lefts: Vec<Left>,
    pub(super) job: Job,
    /// Unrecorded launches that have not ended.
    pub(super) outside: Vec<LaunchInfo>,
    /// Launches made together that had not ended; with an error, the first running one failed.
    pub(super) failed: Option<(Vec<LaunchInfo>, Option<String>)>,
}

/// Reads the claimed entries of arenas, from the addresses of their counters.
pub(super) fn claimed(
    device: &mut dyn Device,
    counters: Vec<(usize, u64)>,
) -> Result<Vec<(usize, u64)>, SessionError> {
    let mut claimed = counters;
    for (_, entries) in &mut claimed {
        let address = *entries;
        device.read(address, bytemuck::bytes_of_mut(entries))?;
    }
    Ok(claimed)
}

/// Sends all remaining data to the writer, and reports launches that have not ended. Returns the first error;
/// all data that does not depend on it is still written.
pub(super) fn write_rest<W: Write + Send + 'static>(
    device: &mut dyn Device,
    worker: &mut Worker<W>,
    rest: Rest,
) -> Result<(), SessionError> {
    let Rest { lefts, job: Job { codec, news, mut plain, host, .. }, outside, failed } = rest;
    news.into_iter().for_each(|message| worker.send(message));
    let interrupted = |info: &LaunchInfo| (*info, EarlyEnd::Interrupted);
    let mut ends: Vec<_> = outside.iter().map(interrupted).collect();
    let mut first = Ok(());
    for mut left in lefts {
        left.plain = std::mem::take(&mut plain);
        let (all, running) = ([&left.plain[..], &left.filled.launches].concat(), left.running.clone());
        match write(device, codec, left, worker) {
            Ok((found, _)) => ends.extend(found),
            Err(error) => {
                // These launches are still listed.
                plain = all;
                ends.extend(running.iter().map(interrupted));
                first = first.and(Err(error));
            }
        }
    }
    plain.sort_unstable_by_key(LaunchInfo::number);
    worker.write(Drained { begin: plain, ..worker.empty() })?;
    let has_begun = |(_, end): &(LaunchInfo, EarlyEnd)| end.positions().iter().any(|at| !at.lanes.is_empty());
    if let Some((infos, message)) = failed {
        let of_these = |end: &&(LaunchInfo, EarlyEnd)| infos.contains(&end.0);
        let found = ends.iter().filter(of_these).find(|end| has_begun(end)).or(ends.iter().find(of_these));
        let (info, positions) = match found {
            Some((info, end)) => (Some(*info), end.positions().to_vec()),
            None => (infos.first().copied(), Vec::new()),
        };
        match (info, message) {
            (Some(info), Some(message)) => {
                ends.retain(|(other, _)| other.number() != info.number());
                ends.push((info, EarlyEnd::failed_at(message, positions)));
            }
            (Some(info), None) if found.is_none() => ends.push(interrupted(&info)),
            _ => {}
        }
    }
    // The file holds a limited number of ends; launches that have begun come first.
    ends.sort_by_key(|end| !(matches!(end.1, EarlyEnd::Failed { .. }) || has_begun(end)));
    ends.truncate(MAX_EARLY_ENDS);
    for end in ends {
        worker.write(Drained { early_end: Some(Box::new(end)), ..Drained::default() })?;
    }
    worker.send_times(host, Vec::new());
    first
}

/// Sends an arena's contents to the writer. Returns the positions of warps of running launches, and the cost.
pub(super) fn write<W: Write + Send + 'static>(
    device: &mut dyn Device,
    codec: CodecSpec,
    left: Left,
    worker: &mut Worker<W>,
) -> Result<(Vec<(LaunchInfo, EarlyEnd)>, DrainCost), SessionError> {
    let Left { mut filled, running, mut plain, is_drained } = left;
    let mut accounts = vec![0; filled.accounts.1 as usize];
    device.read(filled.accounts.0, &mut accounts)?;
    if is_drained && has_recorded(&filled, &accounts) {
        // An unknown part of it is in the file already, so only the launches are written.
        plain.append(&mut filled.launches);
        filled.logged.clear();
    }
    let mut host = SimDevice::new(SimOptions::default());
    let at = allocate_logs(&mut host, &filled)?;
    let each = u64::from(ENTRY_BYTES);
    filled.logs.iter_mut().filter(|range| range.start >= range.end).for_each(|empty| *empty = 0..0);
    let end = filled.logs.iter().map(|range| range.end).max().unwrap_or_default();
    let memory = host.memory_at(at, end as usize * each as usize)?;
    let mut logs = Logs { entries: bytemuck::cast_slice_mut(memory) };
    for range in filled.logs.iter().filter(|range| !filled.logged.is_empty() && !range.is_empty()) {
        let entries = &mut logs.entries[range.start as usize..range.end as usize];
        device.read(filled.pool.logs + u64::from(range.start) * each, bytemuck::cast_slice_mut(entries))?;
    }
    let mut unfinished = Vec::new();
    let mut ends = Vec::new();
    for launch in &filled.logged {
        let Some(info) = running.iter().find(|info| info.number() == launch.launch) else { continue };
        let mut positions: BTreeMap<Vec<LanesAt>, Vec<(u32, u32)>> = BTreeMap::new();
        for index in 0..launch.warps {
            if launch.ring != 0 {
                // The positions of its lanes and the ends of its logs are unknown.
                logs.empty_rings(launch, index);
                unfinished.push((launch.launch, index));
                continue;
            }
            let found = logs.end_warp(launch, index, filled.pool.data_track);
            let Some(lanes) = found else { continue };
            unfinished.push((launch.launch, index));
            let Some(warp) = info.chosen_warp(index) else { continue };
            let ranges = positions.entry(lanes).or_default();
            match ranges.last_mut().filter(|(first, count)| first + count == warp) {
                Some((_, count)) => *count += 1,
                None => ranges.push((warp, 1)),
            }
        }
        // Otherwise the launch has ended, but this was not detected.
        if launch.ring != 0 || !positions.is_empty() {
            ends.push((*info, EarlyEnd::Running { positions: listed(positions) }));
        }
    }
    ends.extend(running.iter().filter(|info| !info.is_recorded()).map(|info| (*info, EarlyEnd::Interrupted)));
    let filled = place(&mut host, filled, at, &mut accounts, &unfinished)?;
    let job = Job { codec, news: Vec::new(), plain, filled: Some(filled), host: Vec::new() };
    let cost = drain::run(job, &mut host, worker)?;
    Ok((ends, cost))
}

/// Returns true if any record of these launches was encoded.
fn has_recorded(filled: &Filled, accounts: &[u8]) -> bool {
    let each = size_of::<WarpAccount>();
    filled.logged.iter().any(|launch| {
        let from = (launch.accounts - filled.accounts.0) as usize;
        let all = accounts[from..].chunks_exact(each).take((launch.tracks * launch.warps) as usize);
        let fields = offset_of!(WarpAccount, recorded)..offset_of!(WarpAccount, lost);
        let rest = offset_of!(WarpAccount, chunks)..each;
        all.into_iter().any(|it| it[fields.clone()].iter().chain(&it[rest.clone()]).any(|byte| *byte != 0))
    })
}

/// Returns the positions with the most warps first, limited to the number that a file can hold.
fn listed(positions: BTreeMap<Vec<LanesAt>, Vec<(u32, u32)>>) -> Vec<WarpsAt> {
    let mut all: Vec<WarpsAt> =
        positions.into_iter().map(|(lanes, warps)| WarpsAt { warps, lanes }).collect();
    all.sort_by_key(|at| std::cmp::Reverse(at.warps.iter().map(|(_, count)| u64::from(*count)).sum::<u64>()));
    let mut room = MAX_WARP_RANGES;
    for at in &mut all {
        at.warps.truncate(room);
        room -= at.warps.len();
    }
    all.retain(|at| !at.warps.is_empty());
    all
}

/// Allocates log memory on the host for an arena; returns its address. Unwritten pages take no memory.
fn allocate_logs(host: &mut SimDevice, filled: &Filled) -> Result<u64, SessionError> {
    let bytes = u64::from(merged_end(filled)) * u64::from(ENTRY_BYTES) + LOG_ALIGNMENT;
    Ok(host.allocate(bytes, MemoryType::Device)?.address.next_multiple_of(LOG_ALIGNMENT))
}

/// Returns the end of merged runs on the host: any stream fits after the logs.
fn merged_end(filled: &Filled) -> u32 {
    let PoolDescriptor { merged_from, merged_end, .. } = filled.pool;
    let used: u32 = filled.logs.iter().map(|range| range.end - range.start).sum();
    merged_end.min(merged_from.saturating_add(used.max(LEAST_MERGED)))
}

/// Copies accounts to the host device that encodes their logs. `unfinished` has warps by launch and index.
fn place(
    host: &mut SimDevice,
    filled: Filled,
    logs: u64,
    accounts: &mut [u8],
    unfinished: &[(u32, u32)],
) -> Result<Filled, SessionError> {
    let Filled { pool, mut logged, span_bytes, .. } = filled.clone();
    let (each, span) = (size_of::<WarpAccount>(), span_bytes as usize);
    let mut allocate = |bytes: u64| host.allocate(bytes, MemoryType::Device);
    let chunk_count = pool.chunk_count.min(MOST_CHUNKS);
    let chunks = allocate(u64::from(chunk_count) * u64::from(pool.chunk_bytes))?.address;
    let claims = allocate(size_of::<Claims>() as u64)?.address;
    let at = allocate(accounts.len() as u64)?.address;
    let mut addresses = Vec::with_capacity(unfinished.len());
    for launch in &mut logged {
        let from = launch.accounts - filled.accounts.0;
        launch.accounts = at + from;
        let spans = from as usize + each * (launch.tracks * launch.warps) as usize;
        for (_, warp) in unfinished.iter().filter(|(number, _)| *number == launch.launch) {
            let streams = (0..launch.tracks).map(|track| track * launch.warps + warp);
            let finished = offset_of!(WarpAccount, finished) as u64;
            addresses
                .extend(streams.map(|stream| launch.accounts + u64::from(stream) * each as u64 + finished));
            if span != 0 {
                let from = spans + *warp as usize * span;
                for field in [offset_of!(WarpSpan, end_clock), offset_of!(WarpSpan, end_timer)] {
                    accounts[from + field..][..8].fill(0);
                }
                accounts[from + offset_of!(WarpSpan, end_sm)..][..4].fill(0);
            }
        }
    }
    host.write(at, accounts)?;
    let merged_end = merged_end(&filled);
    let pool =
        PoolDescriptor { chunks, chunk_count, claims, logs, merged_end, classes: 0, class_slots: 0, ..pool };
    let accounts = (at, accounts.len() as u64);
    Ok(Filled { pool, logged, accounts, unfinished: addresses, logs: [0..0, 0..0], on_host: false, ..filled })
}
