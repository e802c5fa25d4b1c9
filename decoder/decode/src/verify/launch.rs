//! Verification of one launch.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use rayon::prelude::*;
use warptrace_format::account::WarpAccount;
use warptrace_format::codec::Decoder;
use warptrace_format::file::{IndexEntry, LaunchInfo, LossReason, RecordedPolicy};

use super::accounts::{AccountsCheck, ComparedWarps, HeldWarps};
use super::overlaps::check_overlaps;
use super::problem::{EventPosition, Problem};
use super::report::VerifyReport;
use super::stream::{Comparison, Rules, StreamCheck, WarpCheck, check_warp};
use super::times::TimesCheck;
use super::twin::{Misfit, Verdict};
use crate::count::count;
use crate::error::DecodeError;
use crate::file::TraceFile;
use crate::losses::{LaunchLosses, Loss};
use crate::window::{Held, WarpClass, Window, Windows};

const NOT_CHOSEN: WarpAccount = WarpAccount { attempted: 0, recorded: 0, lost: 0, chunks: 0, finished: 1 };

#[derive(Debug, Default)]
struct TrackSums {
    unknown: BTreeMap<u16, (u64, EventPosition)>,
    outside: Option<(u64, EventPosition, u32, u32)>,
    /// Number of warps with data although they were not chosen, and the first of them.
    not_chosen: u64,
    first_not_chosen: u32,
}

pub(super) struct LaunchCheck<'a> {
    rules: Rules<'a>,
    accounts: Vec<AccountsCheck<'a>>,
    sums: Vec<TrackSums>,
    /// Offsets of frames that could not be read. Each is reported once.
    bad_frames: BTreeSet<u64>,
    times: TimesCheck,
}

impl<'a> LaunchCheck<'a> {
    pub(super) fn new(file: &'a TraceFile, info: &'a LaunchInfo, known: &'a [bool]) -> Self {
        let codecs = &file.metadata().tracks[..];
        let tracks = 0..count(codecs.len());
        Self {
            rules: Rules {
                file,
                info,
                codecs,
                known,
                policy: &file.metadata().policy,
                is_timed: file.has_times(),
            },
            times: TimesCheck::default(),
            accounts: tracks.map(|track| AccountsCheck::new(file, info, track)).collect(),
            sums: codecs.iter().map(|_| TrackSums::default()).collect(),
            bad_frames: BTreeSet::new(),
        }
    }

    /// Checks the launch. Calls `checked` with the number of events of each window.
    pub(super) fn run(mut self, report: &mut VerifyReport, checked: &mut dyn FnMut(u64)) {
        let (file, info) = (self.rules.file, self.rules.info);
        report.recorded_launches += u64::from(info.is_recorded());
        report.launch_warps += u64::from(info.warps());
        report.chosen_warps += u64::from(info.chosen().count());
        let tracks: Vec<u32> = (0..count(self.rules.codecs.len())).collect();
        let frames: usize =
            tracks.iter().map(|&track| file.frames(self.rules.info.number(), track).len()).sum();
        let mut windows = Windows::new(file, self.rules.info.number(), tracks, 0..info.warps()).timed();
        loop {
            let mut fresh = Vec::new();
            let (bad_frames, accounts) = (&mut self.bad_frames, &mut self.accounts);
            let mut bad_frame = |entry: &IndexEntry, error: DecodeError| {
                self.times.has_failed |= entry.track == 0;
                if bad_frames.insert(entry.offset) {
                    // Opening checked the index against the launch's warps and the tracks.
                    accounts[entry.track as usize].spoiled.add_frame(entry.first_warp..entry.last_warp + 1);
                    fresh.push(error);
                }
                Ok(())
            };
            let mut window = match windows.next_window(&mut bad_frame) {
                Ok(Some(window)) => window,
                Ok(None) => break,
                // `bad_frame` accepts every frame error; any other error is reported here.
                Err(error) => {
                    self.times.has_failed = true;
                    report.add(Problem::Unreadable(error));
                    break;
                }
            };
            fresh.into_iter().for_each(|error| report.add(Problem::Unreadable(error)));
            for (frame, error) in window.untimed.drain(..) {
                self.times.bad.entry(frame).or_insert(error);
            }
            self.check_window(&window, report, checked);
        }
        report.frames += (frames - self.bad_frames.len()) as u64;
        for track in 0..count(self.rules.codecs.len()) {
            check_overlaps(file, self.rules.info.number(), track, report);
        }
        let times = std::mem::take(&mut self.times);
        let launch = self.rules.info.number();
        self.finish(report);
        times.report(launch, report);
    }

    fn check_window(&mut self, window: &Window, report: &mut VerifyReport, checked: &mut dyn FnMut(u64)) {
        let rules = &self.rules;
        let decoders = || rules.codecs.iter().map(|&codec| Decoder::new(codec)).collect::<Vec<_>>();
        let lanes = |warps: Range<u32>| {
            let (end, lanes) = rules.info.lanes_of(&warps);
            (end, Some(lanes.unwrap_or(0).into()))
        };
        let classes = window.classes(lanes);
        let check = |decoders: &mut Vec<Decoder>, (held, class): &(&Held, WarpClass)| {
            check_warp(rules, class.first(), held, decoders)
        };
        let mut checks: Vec<WarpCheck> = classes.par_iter().map_init(decoders, check).collect();
        // Ranges in order of warp, each with the index of its check.
        let mut runs: Vec<(Range<u32>, usize)> = Vec::new();
        for (at, (held, class)) in classes.iter().enumerate() {
            if !checks[at].tracks.iter().any(|track| track.failed) {
                runs.extend(class.runs().iter().map(|warps| (warps.clone(), at)));
                continue;
            }
            // Checks each warp again, because problems name single warps.
            for warp in class.runs().iter().cloned().flatten() {
                runs.push((warp..warp + 1, checks.len()));
                checks.push(check_warp(rules, warp, held, &mut decoders()));
            }
        }
        runs.sort_unstable_by_key(|(warps, _)| warps.start);
        let mut events = 0;
        for (warps, at) in &runs {
            let times = warps.len() as u64;
            for (number, track) in checks[*at].tracks.iter_mut().enumerate() {
                report.chunks += track.chunks * times;
                events += track.events * times;
                if number == 0 {
                    self.times.add(warps.start, track);
                    report.events += track.events * times;
                    report.warps += if track.events > 0 { times } else { 0 };
                }
                if track.error.is_none() {
                    continue;
                }
                let is_spoiled = self.accounts[number].spoiled.cut(&mut warps.clone()).1;
                // The frame was reported; its gap in the sequence is not.
                let is_news =
                    |error: &DecodeError| !(is_spoiled && matches!(error, DecodeError::Sequence { .. }));
                let error = track.error.take_if(|error| is_news(error));
                error.into_iter().for_each(|error| report.add(Problem::Unreadable(error)));
            }
            self.sum_up(warps, &checks[*at]);
        }
        let tracks = 0..self.accounts.len();
        let explained: Vec<_> = tracks
            .map(|track| self.check_accounts(track, window.warps.end, (&runs, &checks), report))
            .collect();
        let launch = self.rules.info.number();
        let lossy = match self.rules.policy {
            RecordedPolicy::Stream => Lossy::Gaps,
            RecordedPolicy::Ring => Lossy::Ends,
            _ => Lossy::Beginnings,
        };
        let compared = runs.iter().filter(|(_, at)| checks[*at].comparison.is_some());
        for (warp, at) in compared.flat_map(|(warps, at)| warps.clone().map(move |warp| (warp, *at))) {
            compare_tracks((launch, warp), &checks[at], &explained, lossy, report);
        }
        checked(events);
    }

    fn sum_up(&mut self, warps: &Range<u32>, check: &WarpCheck) {
        let (launch, warp, times) = (self.rules.info.number(), warps.start, warps.len() as u64);
        let lanes = self.rules.info.lane_mask(warp).unwrap_or(0);
        for ((track, found), sums) in (0..).zip(&check.tracks).zip(&mut self.sums) {
            let position = |event| EventPosition { launch, track, warp, event };
            for (&location, count) in &found.unknown {
                sums.unknown.entry(location).or_insert((0, position(count.first))).0 += count.events * times;
            }
            if let Some((count, mask)) = found.outside {
                let sum = &mut sums.outside.get_or_insert((0, position(count.first), mask, lanes)).0;
                *sum += count.events * times;
            }
        }
    }

    /// Compares accounts of warps before `end` with the decoded events. Returns warps that may lack events.
    fn check_accounts(
        &mut self,
        track: usize,
        end: u32,
        (runs, checks): (&[(Range<u32>, usize)], &[WarpCheck]),
        report: &mut VerifyReport,
    ) -> Explained {
        let (info, sums) = (self.rules.info, &mut self.sums[track]);
        let (mut explained, mut checked) = (Explained::default(), 0);
        let held = runs.iter().map(|(warps, at)| {
            let &StreamCheck { events, chunks, failed, ref error, .. } = &checks[*at].tracks[track];
            HeldWarps { warps: warps.clone(), events, chunks, is_reported: failed && error.is_none() }
        });
        self.accounts[track].check(end, held, report, &mut |compared| {
            let ComparedWarps { warps, account, held, is_spoiled } = compared;
            let (mut is_lacking, mut is_endless) = (true, true);
            if let Some(account) = account {
                checked += u64::from(info.chosen_in(&warps));
                is_endless = account.finished == 0 || is_spoiled;
                is_lacking = account.lost > 0 || is_endless;
            }
            if held.is_some() {
                explained.lacking.extend(is_lacking.then(|| warps.clone()));
                explained.endless.extend(is_endless.then(|| warps.clone()));
            }
            let says_some = match account {
                Some(account) => *account != NOT_CHOSEN,
                None => held.is_some_and(|held| held.events > 0),
            };
            if says_some {
                sums.add_not_chosen(warps, info);
            }
        });
        report.accounts += checked;
        explained
    }

    fn finish(self, report: &mut VerifyReport) {
        let launch = self.rules.info.number();
        if let Some(end) = self.rules.file.early_end(launch) {
            let kernel = self.rules.file.metadata().kernels.get(self.rules.info.kernel() as usize);
            let kernel = kernel.map_or_else(String::new, |kernel| kernel.name.clone());
            report.add(Problem::EndedEarly { launch, kernel, end: end.clone() });
        }
        for ((track, sums), mut accounts) in (0..).zip(self.sums).zip(self.accounts) {
            accounts.report_missing(report);
            for (location, (events, first)) in sums.unknown {
                report.add(Problem::UnknownLocation { location, events, first });
            }
            if let Some((events, first, mask, lanes)) = sums.outside {
                report.add(Problem::LaneOutside { events, first, mask, lanes });
            }
            report_losses(self.rules.file, (launch, track), report);
            accounts.spoiled.problem((launch, track)).into_iter().for_each(|problem| report.add(problem));
            if sums.not_chosen > 0 {
                let (warps, first) = (sums.not_chosen, sums.first_not_chosen);
                report.add(Problem::NotChosen { launch, track, warps, first });
            }
        }
    }
}

impl TrackSums {
    fn add_not_chosen(&mut self, mut warps: Range<u32>, info: &LaunchInfo) {
        let more = u64::from(warps.end - warps.start - info.chosen_in(&warps));
        if more > 0 && self.not_chosen == 0 {
            let first = warps.find(|warp| !info.is_chosen(*warp));
            self.first_not_chosen = first.unwrap_or_default();
        }
        self.not_chosen += more;
    }
}

/// Reports the losses of a launch on a track. Missing accounts are reported elsewhere.
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

#[derive(Debug, Default)]
struct Explained {
    /// Warps that lost events, or whose losses are unknown.
    lacking: Vec<Range<u32>>,
    /// The subset whose last events may be missing: they did not finish, or that is unknown.
    endless: Vec<Range<u32>>,
}

fn has_warp(ranges: &[Range<u32>], warp: u32) -> bool {
    let at = ranges.partition_point(|warps| warps.end <= warp);
    ranges.get(at).is_some_and(|warps| warps.contains(&warp))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lossy {
    Beginnings,
    Ends,
    /// Events may be missing in the middle.
    Gaps,
}

/// Reports the comparison of a warp's tracks. `explained`: warps of each track that may lack events.
fn compare_tracks(
    (launch, warp): (u32, u32),
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
    let [trace_lacks, twin_lacks] = [of_trace, of_twin].map(|explained| has_warp(&explained.lacking, warp));
    let has_end = ![of_trace, of_twin].iter().any(|explained| has_warp(&explained.endless, warp));
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
        // Both tracks must have the warp's last event.
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
        // The track's own check reports the error.
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
