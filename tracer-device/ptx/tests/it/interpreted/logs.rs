//! Log memory of a launch: its layout, and reading the written logs.

use std::collections::BTreeSet;

use warptrace_abi::log::{
    ALL_LEFT, ENTRY_BYTES, Entry, FirstSegments, Fixed, LOG_ALIGNMENT, LaunchLogs, LoggedLaunch,
    MAX_KEY_COUNT, RESERVED_ENTRIES, STOPPED,
};
use warptrace_format::LANES;
use warptrace_format::chosen::ChosenWarps;
use warptrace_ptx::interpret::Memory;

/// Addresses of log memory, the reservation counter and the warps' counts. The logs cross a multiple of 4
/// GiB.
const LOGS: u64 = 0x7f12_ffff_0000;
const _: () = assert!(LOGS.is_multiple_of(LOG_ALIGNMENT));
pub(crate) const CLAIMS: u64 = 0x1000;
pub(crate) const ACCOUNTS: u64 = 0x2000;
pub(crate) const ACCOUNT_BYTES: usize = 32;
/// Entries of other owners before and after the first segments, and after the entries that may be reserved.
const GUARD: u32 = 24;

#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) launch: LaunchLogs,
    pub(crate) tracks: u32,
    /// Initial value of the reservation counter.
    pub(crate) claimed: u64,
    pub(crate) entries: u32,
    pub(crate) block_threads: u32,
    /// Whether unwritten memory holds 0. Otherwise it holds other numbers.
    pub(crate) zeroed: bool,
    pub(crate) data_track: Option<u32>,
}

impl Layout {
    /// Makes log memory with room for `segments` after the first ones and for a part of another one.
    pub(crate) fn new(
        [warps, tracks]: [u32; 2],
        block_threads: u32,
        first: FirstSegments,
        segments: u32,
        claimed: u64,
    ) -> Self {
        let fixed = Fixed::place((RESERVED_ENTRIES + GUARD).into(), u64::from(warps * tracks), first);
        let mut launch = LaunchLogs {
            logs: LOGS,
            claims: CLAIMS,
            accounts: ACCOUNTS,
            first_segments: fixed.first_segments as u32,
            first_lanes: first.lanes,
            warps,
            first_entries: first.entries,
            segment_entries: 8,
            launch: 3,
            ..LaunchLogs::default()
        };
        launch.claims_from = fixed.end as u32 + GUARD;
        let claimed_entries = u32::try_from(claimed).unwrap_or(u32::MAX / 2).min(1 << 16);
        launch.claims_end = launch.claims_from + claimed_entries + segments * launch.segment_entries + 7;
        let entries = launch.claims_end + GUARD;
        Self { launch, tracks, claimed, entries, block_threads, zeroed: false, data_track: None }
    }

    pub(crate) fn ring(streams: [u32; 2], block_threads: u32, length: u32) -> Self {
        let mut layout = Self::new(streams, block_threads, FirstSegments::of_lanes(length), 0, 0);
        (layout.launch.ring, layout.launch.segment_entries) = (1, length / 2);
        layout
    }

    pub(crate) fn parameter(&self) -> Vec<u8> {
        let LaunchLogs { logs, claims, accounts, first_lanes, warps, first_entries, segment_entries, .. } =
            self.launch;
        let LaunchLogs { claims_from, claims_end, launch, first_segments, .. } = self.launch;
        let mut bytes: Vec<u8> = [logs, claims, accounts].into_iter().flat_map(u64::to_le_bytes).collect();
        let words = [
            first_lanes,
            warps,
            first_entries,
            segment_entries,
            claims_from,
            claims_end,
            launch,
            first_segments,
        ];
        bytes.extend(words.into_iter().chain([self.launch.ring, 0]).flat_map(u32::to_le_bytes));
        bytes.extend(chosen_bytes(self.launch.chosen));
        bytes
    }

    pub(crate) fn fill(&self) -> Vec<u8> {
        if self.zeroed {
            return vec![0; (self.entries * ENTRY_BYTES) as usize];
        }
        (0..self.entries * ENTRY_BYTES).map(|byte| (byte.wrapping_mul(167) >> 3) as u8 | 1).collect()
    }

    pub(crate) fn declare(&self, memory: &mut Memory, more: usize) {
        memory.declare(LOGS, self.fill());
        memory.declare(CLAIMS, [self.claimed.to_le_bytes(), [0xab; 8]].concat());
        memory.declare(ACCOUNTS, vec![0; self.account_bytes() + more]);
    }

    pub(crate) fn read(&self, memory: &Memory, clock: u32) -> Vec<Vec<Track>> {
        let [logs, claims, accounts] =
            [LOGS, CLAIMS, ACCOUNTS].map(|address| memory.region(address).expect("a region"));
        assert_eq!(claims[8..], [0xab; 8]);
        read(self, logs, claims, &accounts[..self.account_bytes()], clock)
    }

    pub(crate) fn claimed_since(&self, claims: &[u8]) -> u64 {
        u64::from_le_bytes(claims[..8].try_into().expect("8 bytes")) - self.claimed
    }

    pub(crate) fn account_bytes(&self) -> usize {
        (self.tracks * self.launch.warps) as usize * ACCOUNT_BYTES
    }

    pub(crate) fn lanes(&self, warp: u32) -> u32 {
        LoggedLaunch { block_threads: self.block_threads, ..LoggedLaunch::default() }.lanes(warp)
    }
}

/// Returns the descriptor's fields that choose warps. Empty for a kernel that does not choose.
pub(crate) fn chosen_bytes(chosen: ChosenWarps) -> Vec<u8> {
    let ChosenWarps { first_block, blocks, block_step, first_warp, block_warps } = chosen;
    let words = [first_block, blocks, block_step, first_warp, block_warps, 0];
    let words = if chosen.is_none() { &[][..] } else { &words };
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Track {
    /// All kept entries, by time.
    pub(crate) entries: Vec<Entry>,
    /// Time of the first lost entry. Entries that begin then or later count as lost.
    pub(crate) lost_from: Option<u32>,
    /// For rings with losses: the time from which on the log is complete.
    pub(crate) complete_from: Option<u32>,
    pub(crate) lost: u64,
    /// For addresses and values: the raw entries, lane by lane.
    pub(crate) data: Vec<[u32; 4]>,
}

impl Track {
    pub(crate) fn recorded(&self, clock: u32) -> Vec<Entry> {
        let before = |entry: &&Entry| {
            self.lost_from.is_none_or(|lost| entry.time.wrapping_sub(clock) < lost.wrapping_sub(clock))
        };
        let from = |entry: &&Entry| {
            self.complete_from.is_none_or(|from| entry.time.wrapping_sub(clock) >= from.wrapping_sub(clock))
        };
        self.entries.iter().filter(before).filter(from).copied().collect()
    }
}

/// Reads all logs, and checks that nothing else was written. `clock` is the time at the start of the launch.
pub(crate) fn read(
    layout: &Layout,
    memory: &[u8],
    claims: &[u8],
    accounts: &[u8],
    clock: u32,
) -> Vec<Vec<Track>> {
    let words = memory.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().expect("4 bytes")));
    let (written, segments) = (vec![false; memory.len()], BTreeSet::new());
    let mut reader = Reader { layout, clock, written, segments, words: words.collect() };
    let launch = layout.launch;
    let mut tracks = Vec::new();
    for track in 0..layout.tracks {
        let mut warps = Vec::new();
        for warp in 0..launch.warps {
            let mut found = Track::default();
            if launch.ring == 0 {
                found.lost_from = reader.head(track, warp);
            }
            for lane in (0..LANES).filter(|lane| layout.lanes(warp) >> lane & 1 != 0) {
                if launch.ring == 0 {
                    reader.log(track, warp, lane, &mut found);
                } else {
                    reader.ring(track, warp, lane, &mut found);
                }
            }
            found.entries.sort_by_key(|entry| entry.time.wrapping_sub(clock));
            let account = (track * launch.warps + warp) as usize * ACCOUNT_BYTES;
            let [attempted, recorded, lost, rest] = [0, 8, 16, 24]
                .map(|at| u64::from_le_bytes(accounts[account + at..][..8].try_into().expect("8 bytes")));
            assert_eq!((attempted, recorded, rest), (lost, 0, 0), "account of warp {warp}");
            let time = if launch.ring == 0 { found.lost_from } else { found.complete_from };
            assert_eq!(lost != 0, time.is_some(), "what is lost has a time");
            found.lost = lost;
            warps.push(found);
        }
        tracks.push(warps);
    }
    let fill = layout.fill();
    for (byte, written) in reader.written.iter().enumerate() {
        assert!(*written || memory[byte] == fill[byte], "entry {} was written", byte as u32 / ENTRY_BYTES);
    }
    let claimed = layout.claimed_since(claims);
    assert!(launch.ring == 0 || claimed == 0, "rings claim nothing");
    let entries = u64::from(launch.claims_end - launch.claims_from).saturating_sub(layout.claimed);
    let granted = claimed.min(entries) / u64::from(launch.segment_entries);
    assert_eq!(reader.segments.len() as u64, granted, "each segment that was claimed is in a log");
    tracks
}

struct Reader<'l> {
    layout: &'l Layout,
    clock: u32,
    /// Bytes that the launch may have written.
    written: Vec<bool>,
    segments: BTreeSet<u32>,
    words: Vec<u32>,
}

impl Reader<'_> {
    fn mark(&mut self, from: u32, to: u32) {
        self.written[(from * ENTRY_BYTES) as usize..(to * ENTRY_BYTES) as usize].fill(true);
    }

    /// Returns the time of the first loss of lanes without a log, if any.
    fn head(&mut self, track: u32, warp: u32) -> Option<u32> {
        let head = self.layout.launch.first_segment(track, warp, 0);
        self.mark(head, head + 1);
        let [low, high, _, left] = self.entry(head);
        let lanes = self.layout.lanes(warp);
        let all_left = self.layout.launch.first_lanes == 1 && left == 0 && lanes == !0;
        assert!(left == lanes || all_left, "warp {warp}: all lanes have left");
        (high != 0).then_some(!low | 1)
    }

    /// Returns the first entry of the lane's first segment, and the segment's number of entries.
    fn first(&mut self, track: u32, warp: u32, lane: u32) -> Option<[u32; 2]> {
        let launch = self.layout.launch;
        let [_, _, mut next, _] = self.entry(launch.first_segment(track, warp, 0));
        if lane < launch.first_lanes {
            if launch.first_lanes > 1 && next >> lane & 1 == 0 {
                // A run without events may have begun there.
                let first = launch.first_segment(track, warp, lane) + 1;
                self.mark(first, first + 1);
                return None;
            }
            return Some([launch.first_segment(track, warp, lane), launch.first_entries]);
        }
        while next != 0 {
            let [following, owner, ..] = self.entry(next);
            if owner == lane {
                self.mark(next, next + 1);
                self.claimed(next);
                return Some([next, launch.segment_entries]);
            }
            next = following;
        }
        None
    }

    fn claimed(&mut self, segment: u32) {
        let (layout, launch) = (self.layout, self.layout.launch);
        assert!(self.segments.insert(segment), "segment {segment} has two owners");
        let offset =
            segment.checked_sub(launch.claims_from).expect("segments are claimed") - layout.claimed as u32;
        assert!(offset.is_multiple_of(launch.segment_entries), "segment {segment}");
        assert!(segment + launch.segment_entries <= launch.claims_end, "segment {segment}");
    }

    fn entry(&self, index: u32) -> [u32; 4] {
        [0, 1, 2, 3].map(|word| self.words[(index * 4 + word) as usize])
    }

    fn log(&mut self, track: u32, warp: u32, lane: u32, found: &mut Track) {
        let (layout, launch, clock) = (self.layout, self.layout.launch, self.clock);
        let Some([mut first, mut length]) = self.first(track, warp, lane) else { return };
        let (mut last_time, mut header) = (None, 1);
        loop {
            let link = first + length - 1;
            let [next, mut free, time, _] = self.entry(link);
            self.mark(link, link + 1);
            if next == 0 {
                free &= !ALL_LEFT;
            }
            if next == 0 && free == STOPPED {
                let since = |time: &u32| time.wrapping_sub(clock);
                free = 0;
                found.lost_from = found.lost_from.into_iter().chain([time | 1]).min_by_key(since);
            }
            first += std::mem::take(&mut header);
            assert!(next != 0 || free <= link - first, "warp {warp} lane {lane}: {free} of {first}..{link}");
            let stop = if next == 0 { link - free } else { link };
            // An unfinished run may follow the finished ones.
            self.mark(first, link.min(stop + 1));
            for entry in (first..stop).map(|index| self.entry(index)) {
                if layout.data_track == Some(track) {
                    assert_ne!(entry[1] & MAX_KEY_COUNT, 0, "merging counts each entry: {entry:x?}");
                    found.data.push(entry);
                    continue;
                }
                let entry = Entry::from_words(entry);
                if !entry.is_run() {
                    assert!(lane == 0, "only lane 0 keeps what is no run");
                    continue;
                }
                assert!(entry.mask != 0 && entry.location != 0, "{entry:?}");
                assert_eq!(entry.mask & !layout.lanes(warp), 0, "{entry:?}");
                let time = entry.time.wrapping_sub(clock);
                assert!(last_time.replace(time).is_none_or(|last| last <= time), "lane {lane}: {entry:?}");
                found.entries.push(entry);
            }
            if next == 0 {
                break;
            }
            self.claimed(next);
            (first, length) = (next, launch.segment_entries);
        }
    }

    fn ring(&mut self, track: u32, warp: u32, lane: u32, found: &mut Track) {
        let (launch, clock) = (self.layout.launch, self.clock);
        let half = launch.segment_entries;
        let first = launch.first_segment(track, warp, lane);
        let second = first + half;
        // The ring's state is in place of the first half's link.
        let [low, high, before, _] = self.entry(second - 1);
        let (lost, end) = (low | high, first + before);
        let state = (second - 1) * ENTRY_BYTES;
        self.written[state as usize..state as usize + 12].fill(true);
        let (whole, rest) = match (end < second, lost) {
            (true, 0) => (first..first, first..end),
            (true, _) => (second..second + half - 1, first..end),
            (false, _) => (first..second - 1, second..end),
        };
        assert!((rest.start..rest.start + half).contains(&end), "{end} {lost}");
        self.mark(whole.start, whole.end);
        self.mark(rest.start, rest.end);
        if lost != 0 {
            self.mark(first, second - 1);
            self.mark(second, second + half - 1);
        }
        let entries = whole.chain(rest).map(|index| Entry::from_words(self.entry(index)));
        let entries: Vec<Entry> = entries.filter(|entry| entry.is_run()).collect();
        let lanes = self.layout.lanes(warp);
        assert!(entries.iter().all(|entry| entry.mask & !lanes == 0 && entry.mask != 0));
        assert!(entries.is_sorted_by_key(|entry| entry.time.wrapping_sub(clock)), "{entries:?}");
        if lost != 0 {
            assert!(entries.len() as u32 >= half - 1, "lane {lane} has less than half of its ring");
            let [since, latest] =
                [entries[0].time, found.complete_from.unwrap_or(clock)].map(|time| time.wrapping_sub(clock));
            found.complete_from = Some(clock.wrapping_add(since.max(latest)));
        }
        found.entries.extend(entries);
    }
}
