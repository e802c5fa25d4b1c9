//! Flat logs of streamed ones, on the host. Counterpart of the kernels in `flatten`.

use std::ptr::with_exposed_provenance_mut;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Acquire;

use warptrace_abi::log::{ENTRY_BYTES, FLAT_ENTRIES};
use warptrace_abi::stream::{LOST_BEFORE, NONE_BEFORE, TAG_STEP};
use warptrace_format::LANES;

use crate::flatten::{FLATTENED, FlattenJob, HAS_LOST, NO_ROOM, SegmentPlace};

/// Builds flat logs from the segments of a round's warps, on the calling thread.
///
/// # Safety
/// All addresses of the job are host addresses of initialized memory of the sizes that the job implies. They
/// are multiples of 16, and the regions do not overlap. Until this returns, other threads access only the
/// segments and the lost events, with 8-byte atomics.
pub unsafe fn flatten(job: &FlattenJob) {
    // SAFETY: the caller guarantees this memory. The lengths follow the documentation of the job's fields.
    let (links, firsts, warps, indices, outcomes, freed, claimed, seen, new_headers) = unsafe {
        let streams = job.round_warps as usize * job.tracks as usize;
        (
            array::<u32>(job.links, job.segment_count as usize),
            array::<u32>(job.firsts, streams * LANES as usize),
            array::<u32>(job.warps, job.round_warps as usize),
            array::<u32>(job.indices, job.launch_warps as usize),
            array::<u32>(job.outcomes, job.round_warps as usize),
            array::<u32>(job.freed, 4 + job.segment_count as usize),
            array::<u64>(job.claimed, 1),
            array::<u32>(job.seen, job.segment_count as usize),
            array::<u32>(job.new_headers, 4 + 2 * job.segment_count as usize),
        )
    };
    for number in 0..job.segment_count {
        let header = entry(job, number, 0);
        let (seen, tag) = (&mut seen[number as usize], header[3]);
        if tag >= TAG_STEP && *seen != tag {
            *seen = tag;
            let listed = 4 + 2 * new_headers[0] as usize;
            new_headers[listed..listed + 2].copy_from_slice(&[number, tag]);
            new_headers[0] += 1;
        }
        let index_of = |warp: u32| indices[warp as usize];
        let Some(SegmentPlace { index, first, before }) = job.place(header, index_of) else { continue };
        match before {
            NONE_BEFORE => firsts[first as usize] = number,
            LOST_BEFORE => outcomes[index as usize] = HAS_LOST,
            before if before <= job.segment_count => links[before as usize - 1] = number,
            _ => {}
        }
    }
    let there_are = u64::from(job.flat_end - job.flat_from);
    for index in 0..job.round_warps {
        let streams = || (0..job.tracks).map(|track| track * job.round_warps + index);
        let chain = |stream: u32, lane: u32| {
            let first = firsts[(stream * LANES + lane) as usize];
            let next = |segment: &u32| links.get(*segment as usize).copied();
            let chain = std::iter::successors(Some(first), next).take_while(|it| *it < job.segment_count);
            chain.take(job.segment_count as usize)
        };
        streams().for_each(|stream| (0..LANES).for_each(|lane| set_head(job, stream, lane, [0, 0])));
        let lost_at = |track: u32| {
            let stream = track * job.launch_warps + warps[index as usize];
            load(job.lost + 8 * u64::from(stream))
        };
        let lanes = || streams().flat_map(|stream| (0..LANES).map(move |lane| (stream, lane)));
        let originals = |lane: u32, segment: u32| {
            let tag = entry(job, segment, 0)[3];
            let words = (1..job.segment_entries).map(move |number| entry(job, segment, number));
            words.filter_map(move |words| FlattenJob::flat(words, tag, lane))
        };
        let all = lanes().flat_map(|(stream, lane)| chain(stream, lane).map(move |segment| (lane, segment)));
        let entries: u64 = all.map(|(lane, segment)| originals(lane, segment).count() as u64).sum();
        let outcome = &mut outcomes[index as usize];
        if *outcome == HAS_LOST || (0..job.tracks).any(|track| lost_at(track) != 0) {
            *outcome = HAS_LOST;
            continue;
        }
        if claimed[0] + entries > there_are {
            *outcome = NO_ROOM;
            continue;
        }
        let mut next = job.flat_from + claimed[0] as u32;
        claimed[0] += entries;
        let mut count = freed[0];
        for (stream, lane) in lanes() {
            let begin = next;
            for segment in chain(stream, lane) {
                for words in originals(lane, segment) {
                    set_entry(job, next, words);
                    next += 1;
                }
                // Damaged segments can form a cycle, which lists a segment repeatedly.
                if let Some(listed) = freed.get_mut(4 + count as usize) {
                    *listed = segment;
                    count += 1;
                }
            }
            set_head(job, stream, lane, [begin, next - begin]);
        }
        freed[0] = count;
        *outcome = FLATTENED;
    }
}

/// # Safety
/// `address` points to `length` values of initialized memory, which nothing else accesses.
unsafe fn array<'a, T>(address: u64, length: usize) -> &'a mut [T] {
    // SAFETY: guaranteed by the caller.
    unsafe { std::slice::from_raw_parts_mut(with_exposed_provenance_mut(address as usize), length) }
}

fn load(address: u64) -> u64 {
    // SAFETY: the address is inside the job's memory, which other threads access only with such atomics.
    unsafe { AtomicU64::from_ptr(with_exposed_provenance_mut(address as usize)) }.load(Acquire)
}

/// Reads an entry of a segment. Its writer stores the second half last.
fn entry(job: &FlattenJob, segment: u32, number: u32) -> [u32; 4] {
    let address = job.segment(segment) + u64::from(number * ENTRY_BYTES);
    let (second, first) = (load(address + 8), load(address));
    [first as u32, (first >> 32) as u32, second as u32, (second >> 32) as u32]
}

fn set_entry(job: &FlattenJob, index: u32, words: [u32; 4]) {
    let address = job.logs + u64::from(index) * u64::from(ENTRY_BYTES);
    // SAFETY: the entry is reserved for this flat log, so nothing else accesses it.
    unsafe { with_exposed_provenance_mut::<[u32; 4]>(address as usize).write(words) };
}

fn set_head(job: &FlattenJob, stream: u32, lane: u32, words: [u32; 2]) {
    let flat_logs = job.flat_logs + stream * FLAT_ENTRIES;
    let address = job.logs + u64::from(flat_logs) * u64::from(ENTRY_BYTES) + u64::from(8 * lane);
    // SAFETY: the position belongs to a stream of the round, so nothing else accesses it.
    unsafe { with_exposed_provenance_mut::<[u32; 2]>(address as usize).write(words) };
}
