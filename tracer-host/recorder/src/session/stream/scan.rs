//! A scan: copies the segments that are in use, takes what is new in them, and encodes what can go on.

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

/// Segments that one task takes runs from.
const SEGMENTS_AT_ONCE: usize = 512;
/// Streams that one task encodes. Of a large launch those that have runs are neighbours: so tasks
/// are short.
const STREAMS_AT_ONCE: usize = 16;

/// How a scan goes about it.
#[derive(Clone, Copy)]
pub(super) struct ReadOptions<'a> {
    /// No kernel runs.
    pub(super) is_over: bool,
    /// What is free is given to those who ask.
    pub(super) gives: bool,
    /// Set where the scan is to leave what remains to the next one.
    pub(super) asked: Option<&'a AtomicBool>,
    /// Which warps the host takes over, of those whose runs nothing has taken.
    pub(super) takes_over: TakesOver,
}

/// Which warps the host takes over.
#[derive(Clone, Copy)]
pub(super) enum TakesOver {
    All,
    /// Of [`TAKEOVER_PARTS`] parts the one with this number.
    Part(u32),
}

/// Parts of a launch's warps; the host takes over one at a time.
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

/// For launches, by their numbers, the lanes of each warp that had left.
pub(super) type Ended = Vec<(u32, Vec<u32>)>;

impl Streams {
    /// Scans what was recorded. With `is_over` no kernel runs: then it is the last scan of all launches.
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

    /// Scans while a kernel runs. As soon as it is `asked` to, it leaves what remains to the next scan.
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

    /// Encodes what a scan has found.
    fn encode_scanned(
        &mut self,
        memory: &mut dyn LiveMemory,
        is_over: bool,
        ended: Ended,
        asked: Option<&AtomicBool>,
    ) -> Result<Drained, DeviceError> {
        let mut scan = Drained { packed: self.encode(is_over, asked), ..Drained::default() };
        self.note(ended);
        if let Some(partition) = self.partition.filter(|_| is_over) {
            self.end(Some(memory), partition, &mut scan)?;
        }
        Ok(scan)
    }

    /// Scans without encoding anything, where a lane waits for what there is, and without giving segments
    /// to those who ask, so that the next such scan finds little.
    pub(in super::super) fn only_scan(&mut self, memory: &mut dyn LiveMemory) -> Result<(), DeviceError> {
        self.leave_rounds();
        let ended = self.take_new(
            memory,
            ReadOptions { is_over: false, gives: false, asked: None, takes_over: TakesOver::All },
        )?;
        self.note(ended);
        Ok(())
    }

    /// Takes what is new of all launches. Returns which lanes had left before.
    ///
    /// That is to be [noted](Self::note) when nothing is done with this scan any more: what a lane has
    /// appended before it left may still have been on its way, and is sure to be seen by the next scan only.
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

    /// Notes the lanes that had left before a scan.
    pub(super) fn note(&mut self, ended: Ended) {
        for (launch, ended) in ended {
            if let Some(launch) = self.launches.get_mut(&launch) {
                launch.note_ended(ended);
            }
        }
    }

    /// Copies the segments in use, hands the new runs in them to their streams, and gives away those that
    /// nothing writes any more: those that are full, and those of lanes that had left before this scan.
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
            // Once, before slots are written again: what is read below was given before.
            self.supply.all_slots_were_read();
        }
        let mut rest = &mut in_use[..];
        let mut piece = Piece::first_of(rest, address, bytes_each);
        memory.start_read(&piece.ranges)?;
        while piece.count > 0 && !is_asked(asked) {
            let (now, later) = rest.split_at_mut(piece.count);
            rest = later;
            // The next piece is copied while this one is taken apart.
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

    /// Reads which lanes of the launches have left.
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

    /// Encodes what can be, of all streams.
    pub(super) fn encode(&self, is_over: bool, asked: Option<&AtomicBool>) -> Vec<u8> {
        let (codec, chunk_bytes, times) = (self.codec, self.chunk_bytes as usize, self.times != 0);
        let encoding = move || {
            // The codec was checked when the session began.
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

/// Whether the host takes what is in a segment.
fn is_hosts(owner: Owner, launches: &BTreeMap<u32, Launch>, takes_over: TakesOver) -> bool {
    match launches.get(&owner.launch) {
        Some(launch) if (owner.stream as usize) < launch.stream_count() => {
            launch.is_hosts(owner.stream, |warp| takes_over.has(warp))
        }
        _ => true,
    }
}

/// Hands the new runs of a segment to its stream. Returns whether its lane had left before this scan.
fn take_runs(segment: &mut InUse, bytes: &[u8], launches: &BTreeMap<u32, Launch>, is_over: bool) -> bool {
    let new = segment.new_entries(bytes);
    let Some(owner) = segment.owner else { return is_over };
    // A kernel that writes out of bounds may have hit the header.
    let Some(launch) = launches.get(&owner.launch) else { return true };
    let Some(mut stream) = launch.stream(owner.stream) else { return true };
    stream.take(owner.lane, new.iter().map(words));
    is_over || launch.has_left(owner.stream, owner.lane)
}
