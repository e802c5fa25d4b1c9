//! The check of one launch.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use rayon::prelude::*;
use warptrace_format::account::WarpAccount;
use warptrace_format::codec::Decoder;
use warptrace_format::file::{IndexEntry, LaunchInfo, LossReason, POLICY_RING, POLICY_STREAM};

use super::overlaps::check_overlaps;
use super::problem::{EventPosition, Problem, unbalanced};
use super::report::VerifyReport;
use super::spoiled::Spoiled;
use super::stream::{Comparison, Rules, StreamCheck, WarpCheck, check_warp};
use super::twin::{Misfit, Verdict};
use crate::accounts::{AccountCursor, Accounted};
use crate::count::count;
use crate::error::DecodeError;
use crate::file::TraceFile;
use crate::losses::{LaunchLosses, Loss, chosen_within};
use crate::window::{Window, Windows};

/// The account of a warp that was not chosen.
const NOT_CHOSEN: WarpAccount = WarpAccount { attempted: 0, recorded: 0, lost: 0, chunks: 0, finished: 1 };

/// Sums over one track of the launch.
#[derive(Debug, Default)]
struct TrackSums {
    unknown: BTreeMap<u16, (u64, EventPosition)>,
    outside: Option<(u64, EventPosition, u32, u32)>,
    /// Warps that hold something although they were not chosen, and the first of them.
    not_chosen: u64,
    first_not_chosen: u32,
    /// The last range without accounting, which the next window may continue.
    missing: Option<Range<u32>>,
    spoiled: Spoiled,
}

pub(super) struct LaunchCheck<'a> {
    rules: Rules<'a>,
    info: Option<&'a LaunchInfo>,
    warps: u32,
    cursors: Vec<AccountCursor<'a>>,
    sums: Vec<TrackSums>,
    /// Frames that could not be read, by offset: each is reported once.
    bad_frames: BTreeSet<u64>,
}

impl<'a> LaunchCheck<'a> {
    pub(super) fn new(file: &'a TraceFile, launch: u32, known: &'a [bool]) -> Self {
        let codecs = &file.metadata().tracks[..];
        let tracks = 0..count(codecs.len());
        let info = file.launch(launch);
        Self {
            rules: Rules { file, launch, codecs, known, ends: file.metadata().policy == POLICY_RING },
            info,
            warps: info.map_or(0, LaunchInfo::warps),
            cursors: tracks.map(|track| AccountCursor::new(file, launch, track)).collect(),
            sums: codecs.iter().map(|_| TrackSums::default()).collect(),
            bad_frames: BTreeSet::new(),
        }
    }

    /// Checks the launch; `checked` is told of each further number of events.
    pub(super) fn run(mut self, report: &mut VerifyReport, checked: &mut dyn FnMut(u64)) {
        let file = self.rules.file;
        if let Some(info) = self.info {
            report.recorded_launches += u64::from(info.is_recorded());
            report.launch_warps += u64::from(info.warps());
            report.chosen_warps += u64::from(info.chosen().count());
        }
        let tracks: Vec<u32> = (0..count(self.rules.codecs.len())).collect();
        let frames: usize = tracks.iter().map(|&track| file.frames(self.rules.launch, track).len()).sum();
        let mut windows = Windows::new(file, self.rules.launch, tracks, 0..self.warps);
        loop {
            let mut fresh = Vec::new();
            let (bad_frames, sums) = (&mut self.bad_frames, &mut self.sums);
            let mut bad_frame = |entry: &IndexEntry, error: DecodeError| {
                if bad_frames.insert(entry.offset) {
                    // The index was checked against the launch's warps and the tracks.
                    sums[entry.track as usize].spoiled.add_frame(entry.first_warp..entry.last_warp + 1);
                    fresh.push(error);
                }
                Ok(())
            };
            let window = match windows.next_window(&mut bad_frame) {
                Ok(Some(window)) => window,
                Ok(None) => break,
                // `bad_frame` takes every error, so that there is none left; report it rather than assume.
                Err(error) => {
                    report.add(Problem::Unreadable(error));
                    break;
                }
            };
            fresh.into_iter().for_each(|error| report.add(Problem::Unreadable(error)));
            self.check_window(&window, report, checked);
        }
        report.frames += (frames - self.bad_frames.len()) as u64;
        for track in 0..count(self.rules.codecs.len()) {
            check_overlaps(file, self.rules.launch, track, report);
        }
        self.finish(report);
    }

    fn check_window(&mut self, window: &Window, report: &mut VerifyReport, checked: &mut dyn FnMut(u64)) {
        let rules = &self.rules;
        let decoders = || rules.codecs.iter().map(|&codec| Decoder::new(codec)).collect::<Vec<_>>();
        let mut checks: Vec<WarpCheck> = window
            .held
            .par_iter()
            .map_init(decoders, |decoders, (&warp, held)| check_warp(rules, warp, held, decoders))
            .collect();
        let mut events = 0;
        for check in &mut checks {
            for (number, track) in check.tracks.iter_mut().enumerate() {
                report.chunks += track.chunks;
                events += track.events;
                if number == 0 {
                    report.events += track.events;
                    report.warps += u64::from(track.events > 0);
                }
                let is_spoiled = self.sums[number].spoiled.cut(&mut (check.warp..check.warp + 1)).1;
                // The frame is named.
                let is_news =
                    |error: &DecodeError| !(is_spoiled && matches!(error, DecodeError::Sequence { .. }));
                let error = track.error.take_if(|error| is_news(error));
                error.into_iter().for_each(|error| report.add(Problem::Unreadable(error)));
            }
            self.sum_up(check);
        }
        let mut explained = vec![Explained::default(); self.cursors.len()];
        for (track, explained) in explained.iter_mut().enumerate() {
            self.check_accounts(track, window.warps.clone(), &checks, explained, report);
        }
        let launch = self.rules.launch;
        let lossy = match self.rules.file.metadata().policy.as_str() {
            POLICY_STREAM => Lossy::Gaps,
            _ if self.rules.ends => Lossy::Ends,
            _ => Lossy::Beginnings,
        };
        checks.iter().for_each(|check| compare_tracks(launch, check, &explained, lossy, report));
        checked(events);
    }

    /// Adds what one warp's events showed to the sums of the launch.
    fn sum_up(&mut self, check: &WarpCheck) {
        let (launch, warp) = (self.rules.launch, check.warp);
        let lanes = self.rules.lanes(warp);
        for ((track, found), sums) in (0..).zip(&check.tracks).zip(&mut self.sums) {
            let position = |event| EventPosition { launch, track, warp, event };
            for (&location, count) in &found.unknown {
                sums.unknown.entry(location).or_insert((0, position(count.first))).0 += count.events;
            }
            if let Some((count, mask)) = found.outside {
                sums.outside.get_or_insert((0, position(count.first), mask, lanes)).0 += count.events;
            }
        }
    }

    /// Compares the accounting of `warps` on one track with what was found. Adds to `explained` the warps
    /// that may hold less than they should there, because events were lost or because nothing is known about
    /// them.
    fn check_accounts(
        &mut self,
        track: usize,
        mut warps: Range<u32>,
        checks: &[WarpCheck],
        explained: &mut Explained,
        report: &mut VerifyReport,
    ) {
        let sums = &mut self.sums[track];
        let mut checks = checks.iter().peekable();
        let stream = (self.rules.launch, count(track));
        while !warps.is_empty() {
            let unknown = match self.cursors[track].next(warps.clone()) {
                Accounted::Missing(range) => {
                    // Of warps that were not chosen there need be none, and of a launch that did not run to
                    // its end there may be none.
                    if self.rules.file.early_end(self.rules.launch).is_none()
                        && let Some(chosen) = self.info.and_then(|info| chosen_within(info, &range))
                    {
                        sums.add_missing(chosen, stream, report);
                    }
                    range
                }
                Accounted::Damaged(range, error) => {
                    report.add(Problem::Unreadable(error));
                    range
                }
                Accounted::Account(range, account) => {
                    warps.start = range.end;
                    report.accounts += u64::from(self.info.map_or(0, |info| info.chosen_in(&range)));
                    let mut rest = range.start;
                    // Only warps with chunks are compared, and those of a window are few.
                    while let Some(check) = checks.next_if(|check| check.warp < range.end) {
                        let warp = check.warp;
                        sums.check_account(stream, rest..warp, &account, None, report);
                        let found = Some(&check.tracks[track]);
                        let is_spoiled = sums.check_account(stream, warp..warp + 1, &account, found, report);
                        rest = warp + 1;
                        if account.lost > 0 || account.finished == 0 || is_spoiled {
                            explained.lacking.insert(warp);
                        }
                        if account.finished == 0 || is_spoiled {
                            explained.endless.insert(warp);
                        }
                    }
                    sums.check_account(stream, rest..range.end, &account, None, report);
                    if account != NOT_CHOSEN {
                        sums.add_not_chosen(range, self.info);
                    }
                    continue;
                }
            };
            while let Some(check) = checks.next_if(|check| unknown.contains(&check.warp)) {
                explained.lacking.insert(check.warp);
                explained.endless.insert(check.warp);
                if check.tracks[track].events > 0 {
                    sums.add_not_chosen(check.warp..check.warp + 1, self.info);
                }
            }
            warps.start = unknown.end;
        }
    }

    /// Reports the sums.
    fn finish(self, report: &mut VerifyReport) {
        let launch = self.rules.launch;
        if let (Some(end), Some(info)) = (self.rules.file.early_end(launch), self.info) {
            let kernel = self.rules.file.metadata().kernels.get(info.kernel() as usize);
            let kernel = kernel.map_or_else(String::new, |kernel| kernel.name.clone());
            report.add(Problem::EndedEarly { launch, kernel, end: end.clone() });
        }
        for (track, mut sums) in (0..).zip(self.sums) {
            sums.flush_missing((launch, track), report);
            for (location, (events, first)) in sums.unknown {
                report.add(Problem::UnknownLocation { location, events, first });
            }
            if let Some((events, first, mask, lanes)) = sums.outside {
                report.add(Problem::LaneOutside { events, first, mask, lanes });
            }
            report_losses(self.rules.file, (launch, track), report);
            sums.spoiled.problem((launch, track)).into_iter().for_each(|problem| report.add(problem));
            if sums.not_chosen > 0 {
                let (warps, first) = (sums.not_chosen, sums.first_not_chosen);
                report.add(Problem::NotChosen { launch, track, warps, first });
            }
        }
    }
}

impl TrackSums {
    /// Notes a range without accounting, joined to the last one if it continues it.
    fn add_missing(&mut self, range: Range<u32>, stream: (u32, u32), report: &mut VerifyReport) {
        match &mut self.missing {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => {
                self.flush_missing(stream, report);
                self.missing = Some(range);
            }
        }
    }

    fn flush_missing(&mut self, (launch, track): (u32, u32), report: &mut VerifyReport) {
        if let Some(range) = self.missing.take() {
            let (first, last) = (range.start, range.end - 1);
            report.add(Problem::MissingAccounting { launch, track, first, last });
        }
    }

    /// Reports an account of each of some warps whose events do not add up, or which does not say what was found of
    /// each, unless they are in frames that cannot be read: then counts what is missing. Returns whether that was so.
    fn check_account(
        &mut self,
        (launch, track): (u32, u32),
        mut warps: Range<u32>,
        account: &WarpAccount,
        found: Option<&StreamCheck>,
        report: &mut VerifyReport,
    ) -> bool {
        // A stream that broke off has been reported; its counts are no news.
        let is_reported = found.is_some_and(|found| found.failed && found.error.is_none());
        let (events, chunks) = found.map_or((0, 0), |found| (found.events, found.chunks));
        let miscounted = [("events", account.recorded, events), ("chunks", account.chunks.into(), chunks)]
            .into_iter()
            .filter(|(_, expected, found)| !is_reported && expected != found);
        let mut has_spoiled = false;
        while !warps.is_empty() {
            let (part, is_in) = self.spoiled.cut(&mut warps);
            let is_spoiled = is_in && miscounted.clone().next().is_some();
            if is_spoiled {
                self.spoiled.count(part.clone(), account.recorded.saturating_sub(events));
                has_spoiled = true;
            }
            report.add_for_each(part, |warp| {
                let miscounted = miscounted.clone().filter(|_| !is_spoiled);
                let miscounted = miscounted.map(move |(what, expected, found)| Problem::Miscounted {
                    launch,
                    track,
                    warp,
                    what,
                    expected,
                    found,
                });
                unbalanced((launch, track), warp, account).into_iter().chain(miscounted)
            });
        }
        has_spoiled
    }

    /// Counts those of some warps that were not chosen.
    fn add_not_chosen(&mut self, mut warps: Range<u32>, info: Option<&LaunchInfo>) {
        let chosen = |warps: &Range<u32>| info.map_or(0, |info| info.chosen_in(warps));
        let more = u64::from(warps.end - warps.start - chosen(&warps));
        if more > 0 && self.not_chosen == 0 {
            let first = warps.find(|warp| !info.is_some_and(|info| info.is_chosen(*warp)));
            self.first_not_chosen = first.unwrap_or_default();
        }
        self.not_chosen += more;
    }
}

/// Reports what a launch lacks on a track. What has no account is reported as that.
fn report_losses(file: &TraceFile, (launch, track): (u32, u32), report: &mut VerifyReport) {
    let LaunchLosses { chosen_warps, recorded, losses } = match file.losses(launch, track) {
        Ok(losses) => losses,
        Err(error) => return report.add(Problem::Unreadable(error)),
    };
    let counted = losses.iter().filter_map(|loss| loss.events).fold(0, u64::saturating_add);
    let attempted = recorded.saturating_add(counted);
    for Loss { reason, warps, events, first_warps } in losses {
        match events {
            Some(events) => {
                report.add_lost(reason, events, warps);
                report.add(Problem::Lost {
                    launch,
                    track,
                    reason,
                    events,
                    attempted,
                    warps,
                    chosen_warps,
                    first_warps,
                });
            }
            None if reason == LossReason::Died => {
                report.unfinished_warps += warps;
                report.add(Problem::Unfinished { launch, track, warps, chosen_warps, first_warps });
            }
            None => {}
        }
    }
}

/// Warps that may hold less than they should on a track.
#[derive(Clone, Debug, Default)]
struct Explained {
    /// Events of them were lost, or nothing is known about that.
    lacking: BTreeSet<u32>,
    /// Of these, the ones whose last events may be missing: they did not finish, or it is not known.
    endless: BTreeSet<u32>,
}

/// What is recorded of a warp that has lost events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lossy {
    Beginnings,
    Ends,
    /// Events may lack in the middle.
    Gaps,
}

/// Reports how the two tracks of a warp compare. `explained` has the warps of each track that may lack
/// events.
fn compare_tracks(
    launch: u32,
    check: &WarpCheck,
    explained: &[Explained],
    lossy: Lossy,
    report: &mut VerifyReport,
) {
    let (Some(twin), [trace, raw]) = (&mut report.twin, &check.tracks[..]) else { return };
    let (Some(Comparison { verdict, matched, passed_over }), [of_trace, of_twin]) =
        (&check.comparison, explained)
    else {
        return;
    };
    let warp = check.warp;
    let [trace_lacks, twin_lacks] = [of_trace, of_twin].map(|explained| explained.lacking.contains(&warp));
    let has_end = ![of_trace, of_twin].iter().any(|explained| explained.endless.contains(&warp));
    twin.events += matched;
    let differs = |Misfit { number, event, expected }: &Misfit| Problem::TracksDiffer {
        launch,
        warp,
        event: *number,
        twin: *event,
        expected: expected.clone(),
    };
    let comparable = match lossy {
        Lossy::Beginnings => true,
        // Both must have the warp's last event.
        Lossy::Ends => has_end,
        Lossy::Gaps => !trace_lacks && !twin_lacks,
    };
    if !comparable {
        twin.unreadable_warps += 1;
        return;
    }
    let (trace_left, twin_left) = match verdict {
        Verdict::Differs(misfit) => {
            twin.different_warps += 1;
            return report.add(differs(misfit));
        }
        // Reported by the track's own check.
        _ if trace.failed || raw.failed => {
            twin.unreadable_warps += 1;
            return;
        }
        &Verdict::TooFarApart { number, waiting } => {
            twin.unreadable_warps += 1;
            return report.add(Problem::TracksTooFarApart { launch, warp, event: number, waiting });
        }
        Verdict::Fits { trace_left, twin_left } => (*trace_left, twin_left.as_ref()),
    };
    let [more_trace, more_twin] = passed_over.map(|events| events != 0);
    let lost = match lossy {
        Lossy::Ends => {
            !trace_left && twin_left.is_none() && (!more_trace || twin_lacks) && (!more_twin || trace_lacks)
        }
        _ => (!trace_left || twin_lacks) && (twin_left.is_none() || trace_lacks),
    };
    match twin_left {
        None if !trace_left && !more_trace && !more_twin => twin.equal_warps += 1,
        _ if lost => twin.prefix_warps += 1,
        Some(misfit) if trace_left => {
            twin.different_warps += 1;
            report.add(differs(misfit));
        }
        _ => {
            twin.different_warps += 1;
            report.add(Problem::LengthsDiffer { launch, warp, trace: trace.events, twin: raw.events });
        }
    }
}
