//! Copies of logs of running or failed kernels: the end of each log, and the positions of lanes.

use std::collections::BTreeMap;

use warptrace_abi::log::{ALL_LEFT, Entry, LoggedLaunch, RESERVED_ENTRIES, STOPPED, STOPPED_TIME_SHIFT};
use warptrace_format::LANES;
use warptrace_format::file::LanesAt;

type Words = [u32; 4];

/// A run that lanes have begun.
#[derive(Clone, Copy, Debug)]
struct Begun {
    mask: u32,
    location: u16,
    /// The clock in units of 2^14 cycles modulo 2^31, and the cycles within a unit, as far as known.
    time: (u32, u64),
}

impl Begun {
    fn of_entry(words: Words) -> Self {
        let Entry { mask, location, .. } = Entry::from_words(words);
        let clock = Entry::clock(words);
        Self { mask, location, time: ((clock >> STOPPED_TIME_SHIFT) as u32 & !STOPPED, clock) }
    }

    /// Returns the run in the last link of a stopped log. It counts as later than all runs in the same unit.
    fn of_stopped([mask, key, _, time]: Words) -> Self {
        let location = Entry::from_words([mask, key, 0, 0]).location;
        Self { mask, location, time: (time & !STOPPED, u64::MAX) }
    }

    /// Returns true if the run began after `other`. Assumes a distance of at most half of the modulus.
    fn is_after(&self, other: &Self) -> bool {
        let ahead = self.time.0.wrapping_sub(other.time.0) & !STOPPED;
        if ahead == 0 { self.time.1 > other.time.1 } else { ahead < STOPPED / 2 }
    }
}

struct LaneLog {
    /// Index of the last link, and number of entries with runs in its segment.
    link: u32,
    here: u32,
    entries: u32,
    /// Index of the first entry of the last segment.
    first: u32,
    /// For a stopped log, the time of the first lost run.
    stopped: Option<u32>,
    /// The last runs of the lanes, each with the lanes that are in no later run, in order.
    last: Vec<(u32, Begun)>,
    /// Whether the last of them is an entry that may still repeat.
    may_go_on: bool,
}

pub(super) struct Logs<'a> {
    /// All entries; zero where no logs are.
    pub(super) entries: &'a mut [Words],
}

impl Logs<'_> {
    /// Returns an entry. The index is clamped, because damaged logs may point outside.
    fn at(&mut self, index: u32) -> &mut Words {
        let last = self.entries.len() - 1;
        &mut self.entries[(index as usize).min(last)]
    }

    fn has_segment(&self, index: u32, entries: u32) -> bool {
        index >= RESERVED_ENTRIES && index as usize + entries as usize <= self.entries.len()
    }

    /// Terminates the logs of a warp. Returns the positions of its lanes; `None` if all have left.
    pub(super) fn end_warp(
        &mut self,
        launch: &LoggedLaunch,
        warp: u32,
        data_track: u32,
    ) -> Option<Vec<LanesAt>> {
        let lanes = launch.lanes(warp);
        let mut found = None;
        for track in (0..launch.tracks).rev() {
            let stream = track * launch.warps + warp;
            if track != 0 && track == data_track {
                // Its entries do not show where they end.
                self.empty(launch, stream);
                continue;
            }
            found = self.end_stream(launch, stream, lanes, track == 0);
        }
        found
    }

    fn empty(&mut self, launch: &LoggedLaunch, stream: u32) {
        let first = launch.first_segment(stream, 0);
        *self.at(first) = [0; 4];
        let length = launch.first_entries - 1;
        *self.at(first + length) = [0, length - 1, 0, 0];
    }

    pub(super) fn empty_rings(&mut self, launch: &LoggedLaunch, warp: u32) {
        for track in 0..launch.tracks {
            for lane in 0..LANES {
                let first = launch.first_segment(track * launch.warps + warp, lane);
                *self.at(first + launch.segment_entries - 1) = [0; 4];
            }
        }
    }

    /// Terminates the logs of a stream, like `end_warp`. With `opens`, runs are written when they begin.
    fn end_stream(
        &mut self,
        launch: &LoggedLaunch,
        stream: u32,
        lanes: u32,
        opens: bool,
    ) -> Option<Vec<LanesAt>> {
        let head = *self.at(launch.first_segment(stream, 0));
        let [low, high, list, left] = head;
        if low | high == 0 {
            self.empty(launch, stream);
            return Some(Vec::new());
        }
        if left & lanes == lanes || self.all_left(launch, stream) {
            return None;
        }
        let all_have = launch.first_lanes > 1;
        let mut logs: [Option<LaneLog>; LANES as usize] = [const { None }; LANES as usize];
        for lane in (0..LANES).filter(|lane| lanes >> lane & 1 != 0) {
            let has_left = left >> lane & 1 != 0;
            if !(all_have && has_left && list >> lane & 1 == 0) && lane < launch.first_lanes {
                let first = launch.first_segment(stream, lane);
                logs[lane as usize] = Some(self.walk(launch, (first, launch.first_entries), has_left));
            }
        }
        let mut next = if all_have { 0 } else { list };
        for _ in 0..LANES {
            if !self.has_segment(next, launch.segment_entries) {
                break;
            }
            let [following, lane, ..] = *self.at(next);
            if lane < launch.first_lanes || lane >= LANES || logs[lane as usize].is_some() {
                // The segment was copied before its header was written.
                break;
            }
            let has_left = left >> (lane % LANES) & 1 != 0;
            logs[(lane % LANES) as usize] = Some(self.walk(launch, (next, launch.segment_entries), has_left));
            next = following;
        }
        // The last run that each lane has begun.
        let mut at: [Option<Begun>; LANES as usize] = [None; LANES as usize];
        for (mask, begun) in logs.iter().flatten().flat_map(|log| &log.last) {
            for lane in (0..LANES).filter(|lane| mask >> lane & 1 != 0) {
                let known = &mut at[lane as usize];
                if known.as_ref().is_none_or(|known| begun.is_after(known)) {
                    *known = Some(*begun);
                }
            }
        }
        let mut holders = 0;
        for (lane, log) in (0..LANES).zip(&mut logs) {
            let Some(log) = log else { continue };
            let goes_on = log.last.last().is_some_and(|(_, last)| {
                at[lane as usize].is_some_and(|at| at.time == last.time && at.location == last.location)
            });
            if opens && log.may_go_on && goes_on && log.here > 0 {
                // Its repetitions are not known.
                log.entries -= 1;
                log.here -= 1;
            }
            if log.entries > 0 {
                holders |= 1 << lane;
            }
            let (end, free) = (log.link, log.length() - log.here);
            *self.at(end) = match log.stopped {
                Some(time) => [0, STOPPED, time, 0],
                None => [0, free, 0, 0],
            };
        }
        let head = launch.first_segment(stream, 0);
        *self.at(head) = [low, high, if all_have { holders } else { list }, left];
        let mut positions: BTreeMap<(u16, bool), u32> = BTreeMap::new();
        for lane in (0..LANES).filter(|lane| (lanes & !left) >> lane & 1 != 0) {
            let Some(own) = at[lane as usize] else {
                *positions.entry((0, false)).or_default() |= 1 << lane;
                continue;
            };
            let is_with = |other: &u32| {
                let it = at[*other as usize].filter(|_| left >> other & 1 == 0);
                it.is_some_and(|it| it.time == own.time && it.location == own.location)
            };
            let with = (0..LANES).filter(is_with).fold(0, |with, lane| with | 1 << lane);
            *positions.entry((own.location, own.mask & lanes != with)).or_default() |= 1 << lane;
        }
        let of = |((location, left_behind), mask)| LanesAt { location, mask, left_behind };
        Some(positions.into_iter().map(of).collect())
    }

    /// Returns true if the last link of lane 0 states that all lanes have left.
    fn all_left(&mut self, launch: &LoggedLaunch, stream: u32) -> bool {
        let mut link = launch.first_segment(stream, 0) + launch.first_entries - 1;
        for _ in 0..self.entries.len() {
            let [next, free, ..] = *self.at(link);
            if next == 0 || free != 0 || !self.has_segment(next, launch.segment_entries) {
                return next == 0 && free & ALL_LEFT != 0;
            }
            link = next + launch.segment_entries - 1;
        }
        false
    }

    /// Reads a log from its first segment, of `entries` entries, up to an entry that was not written.
    fn walk(&mut self, launch: &LoggedLaunch, (first, entries): (u32, u32), has_left: bool) -> LaneLog {
        let mut log = LaneLog {
            link: first + entries - 1,
            here: 0,
            entries: 0,
            first: first + 1,
            stopped: None,
            last: Vec::new(),
            may_go_on: false,
        };
        let most = self.entries.len() as u32;
        loop {
            let link = *self.at(log.link);
            let [next, free, time, begun] = link;
            let leads_on = next != 0 && free == 0 && self.has_segment(next, launch.segment_entries);
            let length = log.link - log.first;
            let here = if has_left && next == 0 {
                length.saturating_sub(free & !(STOPPED | ALL_LEFT))
            } else {
                length
            };
            log.here = 0;
            for index in log.first..log.first + here {
                let words = *self.at(index);
                if words[0] == 0 {
                    break;
                }
                log.here += 1;
                log.note(Begun::of_entry(words));
                log.may_go_on = !has_left;
            }
            log.entries += log.here;
            if log.here < length || !leads_on || log.entries >= most {
                if log.here == length && !leads_on {
                    if next == 0 && free & STOPPED != 0 || next != 0 && begun & STOPPED != 0 {
                        log.stopped = Some(time);
                    }
                    if next != 0 && free != 0 {
                        let is_stopped = log.stopped.is_some();
                        log.note(if is_stopped { Begun::of_stopped(link) } else { Begun::of_entry(link) });
                        log.may_go_on = false;
                    }
                }
                return log;
            }
            log.first = next;
            log.link = next + launch.segment_entries - 1;
        }
    }
}

impl LaneLog {
    /// Returns the entries of the last segment before its link.
    fn length(&self) -> u32 {
        self.link - self.first
    }

    fn note(&mut self, begun: Begun) {
        for (lanes, _) in &mut self.last {
            *lanes &= !begun.mask;
        }
        self.last.retain(|(lanes, _)| *lanes != 0);
        self.last.push((begun.mask, begun));
    }
}
