//! Scans: copy the segments in use, take their new entries, and encode released runs.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;
use warptrace_abi::log::ENTRY_BYTES;
use warptrace_encode::native::ChunkEncoder;

use super::launch::Launch;
use super::partition::Partition;
use super::runs::Encoding;
use super::segments::{InUse, Owner, Piece, words};
use super::{Drained, SessionError, Streams, read_all};
use crate::{DeviceError, LiveMemory, threads};

const SEGMENTS_AT_ONCE: usize = 512;
/// Maximum streams that one task encodes: in a large launch, longer tasks would divide the work unevenly.
const STREAMS_AT_ONCE: usize = 16;

#[derive(Clone, Copy)]
pub(super) struct ReadOptions<'a> {
    pub(super) is_over: bool,
    pub(super) gives: bool,
    /// Once set, the scan stops and leaves the rest to the next one.
    pub(super) asked: Option<&'a AtomicBool>,
    pub(super) takes_over: TakesOver,
}

#[derive(Clone, Copy)]
pub(super) enum TakesOver {
    All,
    /// One of [`TAKEOVER_PARTS`] parts, by number.
    Part(u32),
}

/// Number of parts of a launch's warps; the host takes over one part at a time.
pub(super) const TAKEOVER_PARTS: u32 = 16;

impl TakesOver {
    fn has(self, warp: u32) -> bool {
        match self {
            Self::All => true,
            Self::Part(part) => warp % TAKEOVER_PARTS == part,
        }
    }
}

fn is_asked(asked: Option<&AtomicBool>) -> bool {
    asked.is_some_and(|asked| asked.load(Ordering::Relaxed))
}

/// The lanes of each warp that had left, by launch number.
pub(super) type Ended = Vec<(u32, Vec<u32>)>;

impl Streams {
    /// Scans all segments in use. With `is_over`, all kernels have ended, and this is their last scan.
    pub(in super::super) fn scan(
        &mut self,
        memory: &mut dyn LiveMemory,
        is_over: bool,
    ) -> Result<Drained, SessionError> {
        let before = if is_over { self.encode_rest(memory)? } else { Drained::default() };
        let ended = self.take_new(
            memory,
            ReadOptions { is_over, gives: true, asked: None, takes_over: TakesOver::All },
        )?;
        Ok(self.encode_scanned(memory, is_over, ended, None)?.behind(before))
    }

    /// Scans while a kernel runs. Once `asked` is set, leaves the rest to the next scan.
    pub(in super::super) fn scan_until(
        &mut self,
        memory: &mut dyn LiveMemory,
        asked: Option<&AtomicBool>,
    ) -> Result<Drained, SessionError> {
        if !self.rounds.is_empty() {
            return self.attend(memory, asked);
        }
        let ended = self.take_new(
            memory,
            ReadOptions { is_over: false, gives: true, asked, takes_over: TakesOver::All },
        )?;
        Ok(self.encode_scanned(memory, false, ended, asked)?)
    }

    fn encode_scanned(
        &mut self,
        memory: &mut dyn LiveMemory,
        is_over: bool,
        ended: Ended,
        asked: Option<&AtomicBool>,
    ) -> Result<Drained, DeviceError> {
        let mut scan = Drained { packed: self.encode(is_over, asked).into(), ..Drained::default() };
        self.note(ended);
        if let Some(partition) = self.partition.filter(|_| is_over) {
            self.end(Some(memory), partition, &mut scan)?;
        }
        Ok(scan)
    }

    /// Scans for an interruption. Abandons rounds, and gives no segments, so that the next scan is short.
    pub(in super::super) fn only_scan(&mut self, memory: &mut dyn LiveMemory) -> Result<(), DeviceError> {
        self.leave_rounds();
        let ended = self.take_new(
            memory,
            ReadOptions { is_over: false, gives: false, asked: None, takes_over: TakesOver::All },
        )?;
        self.note(ended);
        Ok(())
    }

    /// Takes the new entries of all launches. Returns the lanes that had left before. The caller must
    /// [register](Self::note) the result only after all work of this scan: the last entries of a lane that
    /// has left may have been in flight, and only the next scan is certain to see them.
    fn take_new(
        &mut self,
        memory: &mut dyn LiveMemory,
        options: ReadOptions<'_>,
    ) -> Result<Ended, DeviceError> {
        let Some(partition) = self.partition.filter(|_| !self.launches.is_empty()) else {
            return Ok(Ended::new());
        };
        let ended = self.read_ended(memory, options.is_over)?;
        self.take_tickets(memory, partition)?;
        self.read(memory, partition, options)?;
        Ok(ended)
    }

    pub(super) fn note(&mut self, ended: Ended) {
        for (launch, ended) in ended {
            if let Some(launch) = self.launches.get_mut(&launch) {
                launch.note_ended(ended);
            }
        }
    }

    /// Copies the segments in use and passes new runs to their streams. Frees segments that no lane writes
    /// any more: full segments, and segments of lanes that had left before this scan.
    pub(super) fn read(
        &mut self,
        memory: &mut dyn LiveMemory,
        partition: Partition,
        ReadOptions { is_over, gives, asked, takes_over }: ReadOptions<'_>,
    ) -> Result<(), DeviceError> {
        let bytes_each = (partition.segment_entries * ENTRY_BYTES) as usize;
        let address = self.memory.address + partition.segments;
        let mut in_use = self.in_use.take();
        threads::install(|| in_use.par_sort_unstable_by_key(|segment| segment.segment));
        if is_over {
            // Done once, before slots are rewritten: all segments read below were given earlier.
            self.supply.all_slots_were_read();
        }
        let mut rest = &mut in_use[..];
        let mut piece = Piece::first_of(rest, address, bytes_each);
        memory.start_read(&piece.ranges)?;
        while piece.count > 0 && !is_asked(asked) {
            let (now, later) = rest.split_at_mut(piece.count);
            rest = later;
            // The next piece is copied while this one is processed.
            let next = Piece::first_of(rest, address, bytes_each);
            memory.start_read(&next.ranges)?;
            let bytes = memory.finish_read()?;
            let launches = &self.launches;
            let take = |segments: &mut [InUse]| {
                let (mut free, mut read) = (Vec::new(), Vec::new());
                for segment in segments {
                    let at = address + u64::from(segment.segment) * bytes_each as u64;
                    let bytes = &bytes[piece.position(at)..][..bytes_each];
                    let owner = segment.owner_in(bytes);
                    if !is_over && owner.is_some() {
                        read.extend(segment.slot.take());
                    }
                    if !is_over && !owner.is_some_and(|owner| is_hosts(owner, launches, takes_over)) {
                        continue;
                    }
                    if take_runs(segment, bytes, launches, is_over)
                        || segment.taken == partition.segment_entries
                    {
                        free.push(segment.segment);
                        segment.is_free = true;
                    }
                }
                (free, read)
            };
            let found: Vec<_> = threads::install(|| now.par_chunks_mut(SEGMENTS_AT_ONCE).map(take).collect());
            for (free, read) in found {
                self.supply.free(&free);
                read.into_iter().for_each(|slot| self.supply.slot_was_read(slot));
            }
            if gives {
                self.give(memory)?;
            }
            piece = next;
        }
        memory.finish_read()?;
        in_use.retain(|segment| !segment.is_free);
        self.in_use.put_back(in_use);
        Ok(())
    }

    /// Reads which lanes of running launches have left.
    pub(super) fn read_ended(
        &self,
        memory: &mut dyn LiveMemory,
        is_over: bool,
    ) -> Result<Ended, DeviceError> {
        let mut all = Ended::new();
        let running = self.launches.values().filter(|launch| !is_over && !launch.is_over);
        for launch in running {
            let warps = launch.warps;
            let at = self.memory.address + launch.ended_at(self.span_bytes);
            let bytes = read_all(memory, at, 4 * (warps as usize).next_multiple_of(2))?;
            let (words, _) = bytes.as_chunks::<4>();
            let ended = words.iter().take(warps as usize).map(|word| u32::from_le_bytes(*word)).collect();
            all.push((launch.info.number(), ended));
        }
        Ok(all)
    }

    /// Encodes the released runs of all streams.
    pub(super) fn encode(&self, is_over: bool, asked: Option<&AtomicBool>) -> Vec<u8> {
        let (codec, chunk_bytes, times) = (self.codec, self.chunk_bytes as usize, self.times != 0);
        let encoding = move || {
            // The codec was checked when the session started.
            let encoder = ChunkEncoder::new(codec, times).ok()?;
            Some(Encoding { encoder, chunk: vec![0; chunk_bytes] })
        };
        let of_launch = |launch: &Launch| -> Vec<u8> {
            let numbers = (0..launch.stream_count()).into_par_iter();
            let packed = numbers.with_max_len(STREAMS_AT_ONCE).map_init(encoding, |encoding, number| {
                let mut packed = Vec::new();
                if is_asked(asked) {
                    return packed;
                }
                if let (Some((name, mut stream)), Some(encoding)) = (launch.waiting(number), encoding) {
                    let is_last = is_over || launch.has_ended(number as u32);
                    stream.go_on(name, is_last, encoding, &mut packed);
                }
                packed
            });
            packed.collect::<Vec<_>>().concat()
        };
        let launches = &self.launches;
        threads::install(|| launches.par_iter().map(|(_, launch)| of_launch(launch)).collect::<Vec<_>>())
            .concat()
    }
}

/// Returns true if the host takes the entries of a segment.
fn is_hosts(owner: Owner, launches: &BTreeMap<u32, Launch>, takes_over: TakesOver) -> bool {
    match launches.get(&owner.launch) {
        Some(launch) if (owner.stream as usize) < launch.stream_count() => {
            launch.is_hosts(owner.stream, |warp| takes_over.has(warp))
        }
        _ => true,
    }
}

/// Passes the new runs of a segment to its stream. Returns true if its lane had left before this scan.
fn take_runs(segment: &mut InUse, bytes: &[u8], launches: &BTreeMap<u32, Launch>, is_over: bool) -> bool {
    let new = segment.new_entries(bytes);
    let Some(owner) = segment.owner else { return is_over };
    // A kernel that writes out of bounds may have overwritten the header.
    let Some(launch) = launches.get(&owner.launch) else { return true };
    let Some(mut stream) = launch.stream(owner.stream) else { return true };
    stream.take(owner.lane, new.iter().map(words));
    is_over || launch.has_left(owner.stream, owner.lane)
}
