//! Log memory of a launch: its layout, and what the sequences have written.

use std::collections::BTreeSet;

use warptrace_abi::log::{
    ENTRY_BYTES, Entry, Fixed, HEAD_BYTES, HEADS_ENTRIES, LOG_ALIGNMENT, LaunchLogs, LoggedLaunch,
    MAX_KEY_COUNT, RESERVED_ENTRIES,
};
use warptrace_format::LANES;
use warptrace_format::chosen::ChosenWarps;

/// Where log memory, claims and accounts are. A multiple of 4 GiB lies among the logs.
pub(crate) const LOGS: u64 = 0x7f12_ffff_0000;
const _: () = assert!(LOGS.is_multiple_of(LOG_ALIGNMENT));
pub(crate) const CLAIMS: u64 = 0x1000;
pub(crate) const ACCOUNTS: u64 = 0x2000;
pub(crate) const ACCOUNT_BYTES: usize = 32;
/// Entries of other owners before the heads, behind the first segments and behind what may be claimed.
const GUARD: u32 = 24;

/// What a launch finds.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) launch: LaunchLogs,
    pub(crate) tracks: u32,
    /// What the counter of claims begins with.
    pub(crate) claimed: u64,
    pub(crate) entries: u32,
    pub(crate) block_threads: u32,
    /// Whether memory that nothing wrote holds 0; else other numbers.
    pub(crate) zeroed: bool,
    /// The track of addresses and values.
    pub(crate) data_track: Option<u32>,
}

impl Layout {
    /// Log memory with first segments of `first` entries, room for `segments` segments more, and for the
    /// beginning of one more.
    pub(crate) fn new(
        [warps, tracks]: [u32; 2],
        block_threads: u32,
        first: u32,
        segments: u32,
        claimed: u64,
    ) -> Self {
        let fixed = Fixed::place((RESERVED_ENTRIES + GUARD).into(), u64::from(warps * tracks), first);
        let mut launch = LaunchLogs {
            logs: LOGS,
            claims: CLAIMS,
            accounts: ACCOUNTS,
            heads: fixed.heads as u32,
            first_segments: fixed.first_segments as u32,
            warps,
            first_entries: first,
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

    /// Log memory with rings of `length` entries.
    pub(crate) fn ring(streams: [u32; 2], block_threads: u32, length: u32) -> Self {
        let mut layout = Self::new(streams, block_threads, length, 0, 0);
        (layout.launch.ring, layout.launch.segment_entries) = (1, length / 2);
        layout
    }

    /// The descriptor as the kernel's parameter.
    pub(crate) fn parameter(&self) -> Vec<u8> {
        let LaunchLogs { logs, claims, accounts, heads, warps, first_entries, segment_entries, .. } =
            self.launch;
        let LaunchLogs { claims_from, claims_end, launch, first_segments, .. } = self.launch;
        let mut bytes: Vec<u8> = [logs, claims, accounts].into_iter().flat_map(u64::to_le_bytes).collect();
        let words =
            [heads, warps, first_entries, segment_entries, claims_from, claims_end, launch, first_segments];
        bytes.extend(words.into_iter().chain([self.launch.ring, 0]).flat_map(u32::to_le_bytes));
        bytes.extend(chosen_bytes(self.launch.chosen));
        bytes
    }

    /// What log memory is filled with before the launch.
    pub(crate) fn fill(&self) -> Vec<u8> {
        if self.zeroed {
            return vec![0; (self.entries * ENTRY_BYTES) as usize];
        }
        (0..self.entries * ENTRY_BYTES).map(|byte| (byte.wrapping_mul(167) >> 3) as u8 | 1).collect()
    }

    pub(crate) fn account_bytes(&self) -> usize {
        (self.tracks * self.launch.warps) as usize * ACCOUNT_BYTES
    }

    pub(crate) fn lanes(&self, warp: u32) -> u32 {
        LoggedLaunch { block_threads: self.block_threads, ..LoggedLaunch::default() }.lanes(warp)
    }
}

/// The fields behind a descriptor's others, which say which warps record; a kernel that does not ask takes
/// none.
pub(crate) fn chosen_bytes(chosen: ChosenWarps) -> Vec<u8> {
    let ChosenWarps { first_block, blocks, block_step, first_warp, block_warps } = chosen;
    let words = [first_block, blocks, block_step, first_warp, block_warps, 0];
    let words = if chosen.is_none() { &[][..] } else { &words };
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// A warp's track.
#[derive(Clone, Debug, Default)]
pub(crate) struct Track {
    /// All that was kept, by time.
    pub(crate) entries: Vec<Entry>,
    /// The time of the first entry that was lost; what began then or later is lost too.
    pub(crate) lost_from: Option<u32>,
    /// Of rings: the time from which on nothing was lost, if something was before.
    pub(crate) complete_from: Option<u32>,
    pub(crate) lost: u64,
    /// Of addresses and values: the entries as they are, lane after lane.
    pub(crate) data: Vec<[u32; 4]>,
}

impl Track {
    /// The entries that count as recorded.
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

/// Reads all logs, and checks that nothing else was written. `clock` is the time at which the launch began.
pub(crate) fn read(
    layout: &Layout,
    memory: &[u8],
    claims: &[u8],
    accounts: &[u8],
    clock: u32,
) -> Vec<Vec<Track>> {
    let Reader { mut written, mut segments, words, .. } = Reader::new(memory);
    let launch = layout.launch;
    let mut tracks = Vec::new();
    for track in 0..layout.tracks {
        let mut warps = Vec::new();
        for warp in 0..launch.warps {
            let heads = launch.heads_of(track, warp);
            let mut found = Track::default();
            for lane in (0..LANES).filter(|lane| layout.lanes(warp) >> lane & 1 != 0) {
                let head = heads * ENTRY_BYTES + lane * HEAD_BYTES;
                written[head as usize..(head + HEAD_BYTES) as usize].fill(true);
                let [end, lost_from] = [0, 1].map(|word| words[(head / 4 + word) as usize]);
                let mut mark = |from: u32, to: u32| {
                    written[(from * ENTRY_BYTES) as usize..(to * ENTRY_BYTES) as usize].fill(true);
                };
                let (mut first, mut length) = (launch.first_segment(track, warp, lane), launch.first_entries);
                let mut last_time = None;
                loop {
                    let link = first + length - 1;
                    // The head says where the log ends.
                    let is_last = (first..=link).contains(&end);
                    let next = if is_last { 0 } else { words[(link * 4) as usize] };
                    mark(link, link + 1);
                    let stop = if next == 0 { end } else { link };
                    assert!(
                        (first..=link).contains(&stop),
                        "warp {warp} lane {lane}: head {end} not in {first}..={link}"
                    );
                    mark(first, stop);
                    for index in first..stop {
                        let index = (index * 4) as usize;
                        let entry = [0, 1, 2, 3].map(|word| words[index + word]);
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
                        // In the order in which they began; a long run takes several entries.
                        let time = entry.time.wrapping_sub(clock);
                        assert!(
                            last_time.replace(time).is_none_or(|last| last <= time),
                            "lane {lane}: {entry:?}"
                        );
                        found.entries.push(entry);
                    }
                    if next == 0 {
                        if lost_from != 0 {
                            assert_eq!(end, link, "a log that lost something is full");
                            let first = found.lost_from.unwrap_or(lost_from);
                            let earlier = lost_from.wrapping_sub(clock) < first.wrapping_sub(clock);
                            found.lost_from = Some(if earlier { lost_from } else { first });
                        }
                        break;
                    }
                    assert!(segments.insert(next), "segment {next} has two owners");
                    let offset = next.checked_sub(launch.claims_from).expect("segments are claimed")
                        - layout.claimed as u32;
                    assert!(offset.is_multiple_of(launch.segment_entries), "segment {next}");
                    assert!(next + launch.segment_entries <= launch.claims_end, "segment {next}");
                    (first, length) = (next, launch.segment_entries);
                }
            }
            found.entries.sort_by_key(|entry| entry.time.wrapping_sub(clock));
            let account = (track * launch.warps + warp) as usize * ACCOUNT_BYTES;
            let [attempted, recorded, lost, rest] = [0, 8, 16, 24]
                .map(|at| u64::from_le_bytes(accounts[account + at..][..8].try_into().expect("8 bytes")));
            assert_eq!((attempted, recorded, rest), (lost, 0, 0), "account of warp {warp}");
            assert_eq!(lost != 0, found.lost_from.is_some(), "what is lost has a time");
            found.lost = lost;
            warps.push(found);
        }
        tracks.push(warps);
    }
    let fill = layout.fill();
    for (byte, written) in written.iter().enumerate() {
        assert!(*written || memory[byte] == fill[byte], "entry {} was written", byte as u32 / ENTRY_BYTES);
    }
    let claimed = u64::from_le_bytes(claims[..8].try_into().expect("8 bytes")) - layout.claimed;
    let entries = u64::from(launch.claims_end - launch.claims_from).saturating_sub(layout.claimed);
    let granted = claimed.min(entries) / u64::from(launch.segment_entries);
    assert_eq!(segments.len() as u64, granted, "each segment that was claimed is in a log");
    tracks
}

pub(crate) struct Reader {
    /// Bytes that the launch may have written.
    pub(crate) written: Vec<bool>,
    segments: BTreeSet<u32>,
    pub(crate) words: Vec<u32>,
}

impl Reader {
    pub(crate) fn new(memory: &[u8]) -> Self {
        let words = memory.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().expect("4 bytes")));
        Self { written: vec![false; memory.len()], segments: BTreeSet::new(), words: words.collect() }
    }
}

const _: () = assert!(HEADS_ENTRIES * ENTRY_BYTES == LANES * HEAD_BYTES);
