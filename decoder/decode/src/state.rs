//! A one-sentence summary of a file's state.

use std::collections::BTreeSet;
use std::fmt::Write;

use rayon::prelude::*;
use warptrace_format::file::{EarlyEnd, LaunchInfo, LossReason, SectionKind, UnrecordedLaunches, fitting};

use crate::accounts::{AccountCursor, Accounted};
use crate::count::count;
use crate::error::DecodeError;
use crate::file::{Completeness, DATA_KINDS, Damage, TraceFile};
use crate::losses::{Reasons, chosen_within};

/// Text for a file without known losses. Frames are not read for it.
const COMPLETE: &str = "complete by its accounts";
const SAID_BYTES: usize = 240;

const UNREADABLE: [(&[SectionKind], &str); 8] = [
    (&DATA_KINDS, "addresses or values that cannot be read"),
    (&[SectionKind::Code], "instructions of locations that cannot be read"),
    (&[SectionKind::Waits], "barriers of waits that cannot be read"),
    (&[SectionKind::Host], "times of launches by the host's clock that cannot be read"),
    (&[SectionKind::Origin], "where it was recorded, which cannot be read"),
    (&[SectionKind::Labels], "labels of launches that cannot be read"),
    (&[SectionKind::Stacks], "call stacks of launches that cannot be read"),
    (&[SectionKind::Unrecorded], "which launches were not traced, which cannot be read"),
];

/// Missing parts of a file, over all launches and tracks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileState {
    /// Whether accounts and sections show that the recording is complete, and the file has no other bytes.
    pub is_whole: bool,
    /// One line for display: what is missing, and what was assumed.
    pub sentence: String,
    /// Missing parts of the trace, without its raw twin and without times; `None` if complete.
    pub lacks: Option<String>,
    /// Missing times; `None` if complete.
    pub lacks_times: Option<String>,
    /// An assumption about the kernel at recording; `None` if there was none.
    pub assumed: Option<&'static str>,
    /// The number of recorded warps and launches; `None` if all were chosen.
    pub window: Option<String>,
    /// The text of [`TraceFile::not_traced`].
    pub not_traced: Option<String>,
}

impl FileState {
    /// Returns true if views must warn: something is missing or assumed, or launches were not traced.
    pub const fn warns(&self) -> bool {
        !self.is_whole || self.assumed.is_some() || self.not_traced.is_some()
    }

    /// Returns true if the trace covers the whole program and there is nothing to report.
    pub const fn is_plain(&self) -> bool {
        !self.warns() && self.window.is_none()
    }
}

/// Missing times: sections that are absent, damaged, or tied to others. Does not check times inside sections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Untimed {
    /// Events in runs without a start time.
    pub events: u64,
    /// Recorded warps without start or end time.
    pub warps: u64,
}

impl Untimed {
    /// Describes the missing times; `None` if complete.
    pub fn describe(&self) -> Option<String> {
        let events =
            (self.events > 0).then(|| format!("times of {} missing", many(self.events, "event", "events")));
        let warps = (self.warps > 0)
            .then(|| format!("begin or end of {} missing", many(self.warps, "warp", "warps")));
        let all: Vec<String> = events.into_iter().chain(warps).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }
}

#[derive(Default)]
struct Lacks {
    lost: u64,
    lossy: u64,
    died: u64,
    unknown: u64,
    /// Events counted by accounts but not in frames, summed over launches.
    absent: u64,
    /// Events in frames but not counted by accounts, in launches with an account for every warp.
    untold: u64,
    /// Errors of accounting sections that cannot be read; `first_damage` is the first of them.
    damaged: BTreeSet<String>,
    first_damage: Option<String>,
}

impl TraceFile {
    /// Describes in one sentence what is cut off, lost, unfinished or without accounts, in the trace and its
    /// raw twin; missing times; and assumptions. The first call reads accounting and sections of times.
    pub fn state(&self) -> &FileState {
        self.state.get_or_init(|| self.found_state())
    }

    fn found_state(&self) -> FileState {
        let mut words = Vec::new();
        let mut twin: Vec<String> = Vec::new();
        for track in 0..count(self.metadata().tracks.len()) {
            let found = self.lacks(track).words(["event", "events"]).into_iter();
            if track == 0 {
                words.extend(found);
            } else {
                twin.extend(found.map(|words| words + " in the raw twin"));
            }
        }
        let ended = |is_it: fn(&EarlyEnd) -> bool| self.early_ends.values().filter(|end| is_it(end)).count();
        for (launches, how) in [
            (ended(|end| matches!(end, EarlyEnd::Failed { .. })), "failed"),
            (ended(|end| matches!(end, EarlyEnd::Interrupted)), "interrupted"),
            (ended(|end| matches!(end, EarlyEnd::Running { .. })), "had not ended"),
        ] {
            if launches > 0 {
                words.push(format!("{} {how}", many(launches as u64, "launch", "launches")));
            }
        }
        if self.has_accesses() {
            // Track 0 already reports warps that did not finish.
            let lacks = Lacks { died: 0, ..self.lacks(self.data_track()) };
            words.extend(lacks.words(["access", "accesses"]));
            if lacks.lossy > 0 && self.derived_sites() > 0 {
                let sites = many(self.derived_sites() as u64, "site", "sites");
                words.push(format!("with them those at {sites} that follow from others"));
            }
        }
        words.extend(UNREADABLE.iter().filter_map(|(kinds, what)| {
            let Damage { error, .. } = self.damage.iter().find(|damage| kinds.contains(&damage.kind))?;
            Some(format!("{what} ({error})"))
        }));
        let cut_off = self.completeness().cut_off();
        let is_exact = *self.completeness() == Completeness::Complete;
        let added = (cut_off.is_none() && !is_exact).then(|| self.completeness().to_string());
        words.extend(cut_off);
        let lacks = (!words.is_empty()).then(|| words.join("; "));
        let lacks_times = self.untimed(self.launches().map(LaunchInfo::number)).describe();
        words.extend(lacks_times.clone());
        words.extend(twin);
        let assumed = self.metadata().assumption();
        let is_complete = words.is_empty();
        let start =
            if is_complete { COMPLETE.to_owned() } else { format!("INCOMPLETE trace: {}", words.join("; ")) };
        let (not_traced, window) = (self.not_traced(), self.window());
        let separator = if is_complete && not_traced.is_none() { ", " } else { "; " };
        let assumes = assumed.map(str::to_owned);
        let sentence = [Some(start), not_traced.clone(), window.clone(), assumes, added.clone()];
        FileState {
            is_whole: is_complete && added.is_none(),
            sentence: sentence.into_iter().flatten().collect::<Vec<_>>().join(separator),
            lacks,
            lacks_times,
            assumed,
            window,
            not_traced,
        }
    }

    /// Returns the number of launches with recorded warps.
    pub fn traced_launches(&self) -> u64 {
        self.launches().filter(|info| info.is_recorded()).count() as u64
    }

    /// Returns true if tracing of the launch was requested, but did not happen. It has no recorded warps.
    pub fn is_untraced(&self, info: &LaunchInfo) -> bool {
        let kernels = || {
            let names: Vec<&str> =
                self.unrecorded.launches.iter().filter(|of| of.are_missing()).map(|of| &*of.kernel).collect();
            // Long names are cut and end in `…`.
            let is_it = |name: &str| {
                names.iter().any(|known| {
                    known.strip_suffix('…').map_or(name == *known, |start| name.starts_with(start))
                })
            };
            self.metadata().kernels.iter().map(|kernel| is_it(&kernel.name)).collect()
        };
        let kernels: &Vec<bool> = self.untraced_kernels.get_or_init(kernels);
        !info.is_recorded() && kernels.get(info.kernel() as usize) == Some(&true)
    }

    /// Describes how many requested launches were not traced, and the main reason; `None` if all were.
    pub fn not_traced(&self) -> Option<String> {
        let missing = || self.unrecorded.launches.iter().filter(|of| of.are_missing());
        let UnrecordedLaunches { kernel, reason, .. } = missing().next()?;
        let launches = missing().fold(0_u64, |sum, of| sum.saturating_add(of.launches));
        let all = many(self.traced_launches().saturating_add(launches), "launch", "launches");
        let (launches, were) = (grouped(launches), if launches == 1 { "was" } else { "were" });
        let [kernel, reason] = [kernel, reason].map(|text| fitting(text, SAID_BYTES));
        Some(format!(
            "NOT ALL LAUNCHES: {launches} of {all} {were} not traced ({kernel}: {reason}); info lists them"
        ))
    }

    /// Describes how much of the program was chosen for recording; `None` if all of it was.
    fn window(&self) -> Option<String> {
        let [mut warps, mut chosen, mut launches, mut traced] = [0_u64; 4];
        for info in self.launches().filter(|info| !self.is_untraced(info)) {
            let of_launch = u64::from(info.chosen().count());
            warps += u64::from(info.warps());
            chosen += of_launch;
            launches += 1;
            traced += u64::from(of_launch > 0);
        }
        let of = |some, all, [one, several]: [&str; 2]| {
            format!("{} of {}", grouped(some), many(all, one, several))
        };
        (chosen < warps).then(|| {
            let warps = of(chosen, warps, ["warp", "warps"]);
            if traced < launches {
                format!("recorded of {warps}, in {}", of(traced, launches, ["launch", "launches"]))
            } else {
                format!("recorded of {warps}")
            }
        })
    }

    /// Counts the missing times of some launches, among the times that were recorded.
    pub fn untimed(&self, launches: impl IntoIterator<Item = u32>) -> Untimed {
        let mut found = Untimed::default();
        for launch in launches {
            if self.has_times() {
                let lacking = self.frames(launch, 0).iter().filter(|frame| self.find_times(frame).is_err());
                found.events = lacking.fold(found.events, |sum, frame| sum.saturating_add(frame.events));
            }
            if self.has_spans() {
                let ended = self.warp_spans(launch).readable().filter_map(Result::ok);
                let ended = ended.filter(|(_, span)| span.has_ended()).count() as u64;
                let chosen = self.launch(launch).map_or(0, |info| u64::from(info.chosen().count()));
                found.warps += chosen.saturating_sub(ended);
            }
        }
        found
    }

    fn lacks(&self, track: u32) -> Lacks {
        let launches: Vec<&LaunchInfo> = self.launches().collect();
        let of_launch = |info: &&LaunchInfo| {
            let mut found = Lacks::default();
            found.add(self, info, track);
            found
        };
        let each: Vec<Lacks> = launches.par_iter().map(of_launch).collect();
        each.into_iter().fold(Lacks::default(), Lacks::merge)
    }
}

impl Lacks {
    fn add(&mut self, file: &TraceFile, info: &LaunchInfo, track: u32) {
        let reasons = Reasons::new(file, info.number());
        let mut cursor = AccountCursor::new(file, info.number(), track);
        let mut rest = 0..info.warps();
        let (mut told, mut is_told) = (0_u64, true);
        while !rest.is_empty() {
            let warps = match cursor.next(rest.clone()) {
                Accounted::Account(warps, account) => {
                    rest.start = warps.end;
                    told = told.saturating_add(account.recorded.saturating_mul(warps.len() as u64));
                    let chosen = u64::from(info.chosen_in(&warps));
                    self.lost = self.lost.saturating_add(account.lost.saturating_mul(chosen));
                    self.lossy += if account.lost > 0 { chosen } else { 0 };
                    self.died += if account.finished == 0 { chosen } else { 0 };
                    continue;
                }
                Accounted::Missing(warps) => warps,
                Accounted::Damaged(warps, error) => {
                    let is_known = !matches!(error, DecodeError::TooMuchWork { .. });
                    let error = error.to_string();
                    self.first_damage.get_or_insert_with(|| error.clone());
                    self.damaged.insert(error);
                    if !is_known {
                        // The accounts of these warps and all later ones are unknown.
                        return;
                    }
                    warps
                }
            };
            rest.start = warps.end;
            let Some(chosen) = chosen_within(info, &warps) else { continue };
            let chosen = u64::from(info.chosen_in(&chosen));
            is_told = false;
            for (reason, _) in reasons.missing(None) {
                let sum = if reason == LossReason::Died { &mut self.died } else { &mut self.unknown };
                *sum += chosen;
            }
        }
        let held = file.totals(info.number(), track).events;
        self.absent = self.absent.saturating_add(told.saturating_sub(held));
        if is_told {
            self.untold = self.untold.saturating_add(held.saturating_sub(told));
        }
    }

    fn merge(mut self, other: Self) -> Self {
        self.lost = self.lost.saturating_add(other.lost);
        self.absent = self.absent.saturating_add(other.absent);
        self.untold = self.untold.saturating_add(other.untold);
        self.lossy += other.lossy;
        self.died += other.died;
        self.unknown += other.unknown;
        self.damaged.extend(other.damaged);
        self.first_damage = self.first_damage.or(other.first_damage);
        self
    }

    fn words(&self, [one, several]: [&str; 2]) -> Vec<String> {
        let mut words = Vec::new();
        if self.lossy > 0 {
            let (lost, warps) = (many(self.lost, one, several), many(self.lossy, "warp", "warps"));
            words.push(format!("{lost} of {warps} lost"));
        }
        if self.died > 0 {
            words.push(format!("{} not finished", many(self.died, "warp", "warps")));
        }
        if self.unknown > 0 {
            words.push(format!("{} without an account of losses", many(self.unknown, "warp", "warps")));
        }
        if self.absent > 0 {
            words.push(format!("{} fewer than accounts tell of", many(self.absent, one, several)));
        }
        if self.untold > 0 {
            words.push(format!("{} more than accounts tell of", many(self.untold, one, several)));
        }
        if let Some(first) = &self.first_damage {
            let more = (self.damaged.len() as u64).saturating_sub(1);
            let mut said = format!("accounts that cannot be read ({first}");
            if more > 0 {
                let _ = write!(said, "; and {} more", many(more, "section", "sections"));
            }
            words.push(said + ")");
        }
        words
    }
}

fn many(number: u64, one: &str, several: &str) -> String {
    format!("{} {}", grouped(number), if number == 1 { one } else { several })
}

/// Formats a number with separators: `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy);
    groups.collect::<Vec<_>>().join(",")
}
