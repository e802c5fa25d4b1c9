//! Bounds-checked access to the native encoder's memory. All unsafe access to the pool and logs is here.

use std::marker::PhantomData;
use std::ptr::with_exposed_provenance_mut;

use warptrace_abi::log::{FLAT, FLAT_ENTRIES, LoggedLaunch, RESERVED_ENTRIES};
use warptrace_abi::pool::{Claims, PARTED, PoolDescriptor};
use warptrace_format::LANES;
use warptrace_format::account::{MAX_TRACKS, WarpAccount};
use warptrace_format::chunk::{MAX_CHUNK_BYTES, MIN_CHUNK_BYTES};

use super::EncodeError;
use crate::chunks;
use crate::codec::Codec;
use crate::lane_log::LogMemory;
use crate::merged::Room;
use crate::warp::NEVER;

/// Words of a log entry, or of a merged run.
pub(super) type Words = [u32; 4];

pub(super) struct DeviceMemory<'a> {
    pub(super) pool: PoolDescriptor,
    launches: &'a [LoggedLaunch],
    pub(super) streams: u32,
    memory: PhantomData<&'a mut [u8]>,
}

/// A stream: one track of a warp.
#[derive(Clone, Copy)]
pub(super) struct StreamName {
    pub(super) launch: usize,
    pub(super) track: u32,
    pub(super) warp: u32,
}

/// The memory that one stream's task writes.
pub(super) struct Owned<'a> {
    pub(super) name: StreamName,
    pub(super) account: &'a mut WarpAccount,
}

impl<'a> DeviceMemory<'a> {
    /// Checks the descriptors.
    ///
    /// # Safety
    /// The addresses are host addresses of initialized memory of the sizes that the descriptors imply:
    /// chunks, claims, log memory up to `merged_end`, classes, accounts of each launch. The regions do not
    /// overlap, and nothing else accesses them while the result exists.
    pub(super) unsafe fn new(
        pool: &PoolDescriptor,
        launches: &'a [LoggedLaunch],
    ) -> Result<Self, EncodeError> {
        check_pool(pool)?;
        let mut streams = 0_u32;
        for (index, launch) in launches.iter().enumerate() {
            streams = check_launch(pool, index, launch, streams)?;
        }
        Ok(Self { pool: *pool, launches, streams, memory: PhantomData })
    }

    pub(super) fn launch(&self, name: StreamName) -> &'a LoggedLaunch {
        &self.launches[name.launch]
    }

    fn number(&self, name: StreamName) -> usize {
        let launch = &self.launches[name.launch];
        (launch.first_stream + name.track * launch.warps + name.warp) as usize
    }

    /// Returns true if a stream represents its class, or if classes were not requested.
    pub(super) fn is_first(&self, name: StreamName) -> bool {
        let number = self.number(name);
        // SAFETY: an element (contract of `new`), aligned (checked there), which nothing writes meanwhile.
        self.pool.classes == 0 || unsafe { self.class_array().add(number).read() } & !PARTED == number as u32
    }

    pub(super) fn class_array(&self) -> *mut u32 {
        with_exposed_provenance_mut(self.pool.classes as usize)
    }

    pub(super) fn stream_names(&self) -> impl Iterator<Item = StreamName> {
        let of_launch = |(index, launch): (usize, &LoggedLaunch)| {
            let LoggedLaunch { tracks, warps, .. } = *launch;
            let warps = move |track| (0..warps).map(move |warp| StreamName { launch: index, track, warp });
            (0..tracks).flat_map(warps)
        };
        self.launches.iter().enumerate().flat_map(of_launch)
    }

    pub(super) fn room(&self, codec: Codec, track: u32) -> Room {
        Room::new(&self.pool, codec, track)
    }

    pub(super) fn time_bytes(&self, track: u32) -> u32 {
        self.pool.time_bytes(track)
    }

    pub(super) fn data_entries(&self) -> usize {
        self.pool.data_entries() as usize
    }

    /// Returns the part of log memory that holds logs. Merged runs follow it.
    pub(super) fn logs(&self) -> LogEntries<'_> {
        let start = with_exposed_provenance_mut::<Words>(self.pool.logs as usize);
        // SAFETY: initialized memory (contract of `new`), aligned (checked there), which nothing writes.
        LogEntries(unsafe { std::slice::from_raw_parts(start, self.pool.merged_from as usize) })
    }

    /// Calls `task` for each stream with the memory that it owns, in order or in parallel.
    ///
    /// # Safety
    /// The function is not called again before it returns.
    pub(super) unsafe fn for_each_stream<S>(
        &self,
        parallel: bool,
        start: impl Fn() -> S + Sync + Send,
        task: impl Fn(&mut S, Owned<'_>) + Sync + Send,
    ) {
        use rayon::prelude::*;
        let owned = |number: u32| {
            let launch = self.launches.partition_point(|launch| launch.first_stream <= number) - 1;
            let info = &self.launches[launch];
            let in_launch = number - info.first_stream;
            let name = StreamName { launch, track: in_launch / info.warps, warp: in_launch % info.warps };
            let accounts = with_exposed_provenance_mut::<WarpAccount>(info.accounts as usize);
            // SAFETY: an account of the launch (contract of `new`), aligned (checked there). Each stream's
            // account is used once (contract of this function).
            let account = unsafe { &mut *accounts.add(in_launch as usize) };
            Owned { name, account }
        };
        if parallel {
            let streams = (0..self.streams).into_par_iter();
            streams.for_each_init(start, |state, number| task(state, owned(number)));
        } else {
            let mut state = start();
            (0..self.streams).for_each(|number| task(&mut state, owned(number)));
        }
    }

    /// Reserves entries of log memory for merged runs, like the kernels. Returns `None` if too few remain.
    #[expect(clippy::mut_from_ref, reason = "the counter gives each entry to one task")]
    pub(super) fn claim_merged(&self, entries: u32) -> Option<&mut [Words]> {
        let first = chunks::claim_merged(&self.pool, entries);
        if first == NEVER {
            return None;
        }
        let start = with_exposed_provenance_mut::<Words>(self.pool.logs as usize);
        // SAFETY: memory for merged runs (initialized, in bounds). The counter gives each entry to one task.
        Some(unsafe { std::slice::from_raw_parts_mut(start.add(first as usize), entries as usize) })
    }

    #[expect(clippy::mut_from_ref, reason = "the counter gives each chunk to one task")]
    pub(super) fn claim_chunk(&self) -> Option<&mut [u8]> {
        let index = chunks::claim_chunks(&self.pool, 1);
        if index >= self.pool.chunk_count {
            return None;
        }
        let bytes = self.pool.chunk_bytes as usize;
        let start = with_exposed_provenance_mut::<u8>(self.pool.chunks as usize);
        // SAFETY: memory of the pool (initialized, in bounds). The counter gives each chunk to one task.
        Some(unsafe { std::slice::from_raw_parts_mut(start.add(index as usize * bytes), bytes) })
    }

    pub(super) fn merged_entries(&self) -> u32 {
        self.pool.merged_end - self.pool.merged_from
    }

    /// Returns the reserved amounts.
    ///
    /// # Safety
    /// No task reserves anything meanwhile.
    pub(super) unsafe fn claims(&self) -> Claims {
        // SAFETY: the claims (contract of `new`), aligned (checked there).
        let claims = unsafe { with_exposed_provenance_mut::<Claims>(self.pool.claims as usize).read() };
        Claims { reserved: 0, ..claims }
    }
}

/// Writes words in little-endian order, up to the end of `to`.
pub(super) fn write_words(to: &mut [u8], words: &[u32]) {
    for (bytes, word) in to.as_chunks_mut::<4>().0.iter_mut().zip(words) {
        *bytes = word.to_le_bytes();
    }
}

#[derive(Clone, Copy)]
pub(super) struct LogEntries<'a>(&'a [Words]);

impl LogMemory for LogEntries<'_> {
    #[inline(always)]
    fn end(self) -> u32 {
        self.0.len() as u32
    }

    #[inline(always)]
    fn entry(self, index: u32) -> Words {
        self.0[index as usize]
    }

    #[inline(always)]
    fn first_word(self, index: u32) -> u32 {
        self.0[index as usize][0]
    }
}

fn check_pool(pool: &PoolDescriptor) -> Result<(), EncodeError> {
    let check = |fine: bool, field, value: u64, must| {
        if fine { Ok(()) } else { Err(EncodeError::Pool { field, value, must }) }
    };
    let chunk = pool.chunk_bytes;
    let is_chunk = chunk.is_power_of_two() && (MIN_CHUNK_BYTES..=MAX_CHUNK_BYTES).contains(&chunk);
    check(is_chunk, "chunk_bytes", chunk.into(), "a power of two from 512 bytes to 1 MiB is needed")?;
    let chunks = pool.chunks.checked_add(u64::from(pool.chunk_count) * u64::from(chunk));
    let aligned = pool.chunks.is_multiple_of(16) && pool.chunks != 0;
    check(aligned && chunks.is_some(), "chunks", pool.chunks, "a multiple of 16 is needed")?;
    let aligned = pool.claims.is_multiple_of(8) && pool.claims != 0;
    check(aligned, "claims", pool.claims, "a multiple of 8 is needed")?;
    let aligned = pool.logs.is_multiple_of(16) && pool.logs != 0;
    check(aligned, "logs", pool.logs, "a multiple of 16 is needed")?;
    check(pool.classes.is_multiple_of(4), "classes", pool.classes, "a multiple of 4 is needed")?;
    let from = pool.merged_from;
    check(
        (RESERVED_ENTRIES..=pool.merged_end).contains(&from),
        "merged_from",
        from.into(),
        "it must lie between the reserved entries and merged_end",
    )
}

/// Checks a launch. Takes the number of streams of earlier launches; returns it including this launch.
fn check_launch(
    pool: &PoolDescriptor,
    index: usize,
    launch: &LoggedLaunch,
    streams: u32,
) -> Result<u32, EncodeError> {
    let check = |fine: bool, field, value: u32, must| {
        let value = value.into();
        if fine {
            Ok(())
        } else {
            Err(EncodeError::Launch { index, launch: launch.launch, field, value, must })
        }
    };
    let tracks = launch.tracks;
    check((1..=MAX_TRACKS as u32).contains(&tracks), "tracks", tracks, "there are one or two tracks")?;
    check(launch.warps != 0, "warps", 0, "a launch has warps")?;
    check(launch.block_threads != 0, "block_threads", 0, "a block has threads")?;
    check(
        launch.first_stream == streams,
        "first_stream",
        launch.first_stream,
        "it must count the streams of the launches before",
    )?;
    let most = pool.merged_from;
    let is_length = |entries: u32| entries >= 2 && entries <= most;
    let lengths = "a segment has at least 2 entries, and fits into log memory";
    let is_flat = launch.ring == FLAT;
    check(is_flat || is_length(launch.first_entries), "first_entries", launch.first_entries, lengths)?;
    check(is_flat || is_length(launch.segment_entries), "segment_entries", launch.segment_entries, lengths)?;
    check(launch.ring <= FLAT, "ring", launch.ring, "it is 0, 1 or 2")?;
    let lanes = launch.first_lanes;
    let is_fine = is_flat || lanes == LANES || lanes == 1 && launch.ring == 0;
    check(is_fine, "first_lanes", lanes, "lane 0 has a first segment, or each lane has")?;
    if launch.ring == 1 {
        let first = launch.first_entries;
        let is_ring = first.is_power_of_two() && first == launch.segment_entries.saturating_mul(2);
        check(is_ring, "first_entries", first, "a ring is a power of two long, and its segments are halves")?;
        let aligned = launch.first_segments.is_multiple_of(first);
        check(aligned, "first_segments", launch.first_segments, "rings begin at multiples of their length")?;
    }
    let aligned = launch.accounts.is_multiple_of(8) && launch.accounts != 0;
    check(aligned, "accounts", launch.accounts as u32, "accounts lie at a multiple of 8")?;
    let own = u64::from(launch.warps) * u64::from(tracks);
    let total = u64::from(streams) + own;
    let each = if is_flat { FLAT_ENTRIES.into() } else { launch.first().total(1) };
    let lie_inside = own
        .checked_mul(each)
        .is_some_and(|entries| u64::from(launch.first_segments).saturating_add(entries) <= u64::from(most));
    let inside = "first segments must lie in the part of log memory that is for logs";
    check(lie_inside, "first_segments", launch.first_segments, inside)?;
    let fits = |streams: &u32| *streams < PARTED;
    u32::try_from(total).ok().filter(fits).ok_or_else(|| EncodeError::Launch {
        index,
        launch: launch.launch,
        field: "warps",
        value: launch.warps.into(),
        must: "all launches have in all less than 2^31 streams",
    })
}
