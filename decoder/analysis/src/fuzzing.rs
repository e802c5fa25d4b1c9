//! Library part of the fuzz target `analyse`, which tests can also run. Panics on a finding.

pub(crate) mod charges;

use warptrace_decoder::{TraceFile, fuzzing::repaired};

use crate::words::{self, Names};
use crate::{Analysis, Counts, Selection, Time, analyse, compare};

const MAX_CHARGED: u64 = 1 << 17;
/// Limit of events per input. A few bytes can announce billions, and cycles of them are slow but correct.
const MAX_EVENTS: u64 = 1 << 22;
const MAX_WARPS: u64 = 1 << 16;

/// Analyses `data` as a trace, unchanged and with repaired checksums, and checks all sums.
pub fn analyse_arbitrary(data: &[u8]) {
    check(data.to_vec());
    check(repaired(data.to_vec()));
}

fn check(data: Vec<u8>) {
    if let Ok(trace) = TraceFile::from_bytes(data) {
        check_trace(&trace);
    }
}

/// Analyses a trace and checks all sums, and causes event by event. Skips damaged and too large traces.
/// Panics if figures disagree.
pub fn check_trace(trace: &TraceFile) {
    let sum = |of: &dyn Fn(u32) -> u64| {
        trace.launches().fold(0_u64, |sum, info| sum.saturating_add(of(info.number())))
    };
    let events = sum(&|launch| trace.totals(launch, 0).events);
    let warps = sum(&|launch| trace.launch(launch).map_or(0, |info| info.warps().into()));
    if events > MAX_EVENTS || warps > MAX_WARPS {
        return;
    }
    let Ok(analysis) = analyse(trace, &Selection::default()) else { return };
    adds_up(&analysis);
    if events <= MAX_CHARGED {
        charges::check(trace, &analysis);
    }
    say(trace, &analysis);
    let same = compare([trace, trace], &Selection::default()).expect("it was analysed before");
    assert!(same.changed.is_empty() && same.single_warps == [0, 0], "a trace is what it is");
    assert_eq!(same.greatest_percent(), 0.0);
    if let Some(warp) = analysis.warps.iter().next() {
        let warp = crate::WarpName { launch: warp.launch, warp: warp.warp };
        assert_eq!(same.first_change([trace, trace], [warp; 2]).expect("it was decoded before"), None);
    }
}

fn adds_up(analysis: &Analysis) {
    let total = analysis.counts;
    let of = |counts: &mut dyn Iterator<Item = Counts>| {
        let mut sum = Counts::default();
        counts.for_each(|counts| sum.add(&counts));
        sum
    };
    assert_eq!(of(&mut analysis.locations.iter().map(|row| row.counts)), total);
    assert_eq!(of(&mut analysis.lines.iter().map(|row| row.counts)), total);
    assert_eq!(of(&mut analysis.kernels.iter().map(|row| row.counts)), total);
    assert_eq!(of(&mut analysis.warps.iter().map(|row| row.counts)), total);
    let charged =
        |idle: &mut dyn Iterator<Item = u64>| idle.fold(0, |sum: u64, idle| sum.saturating_add(idle));
    assert_eq!(charged(&mut analysis.causes.iter().map(|cause| cause.idle)), total.idle);
    assert_eq!(
        charged(&mut analysis.kernels.iter().flat_map(|row| row.causes.values().copied())),
        total.idle
    );
    let grouped: u64 = analysis.paths.iter().map(|group| group.warps).sum();
    assert_eq!(grouped, analysis.warps.len() as u64);
    let visits = |active: &[u64]| active.iter().fold(0_u64, |sum, visits| sum.saturating_add(*visits));
    assert_eq!(visits(&analysis.active), total.visits);
    times_add_up(analysis);
    schedule_adds_up(analysis);
    for location in &analysis.locations {
        let id = location.point.location;
        let into = analysis.edges.iter().filter(|edge| edge.to == Some(id)).map(|edge| edge.lanes);
        assert_eq!(into.sum::<u64>(), location.counts.lanes, "lanes to {id}");
        let from = analysis.edges_from(id).iter().map(|edge| edge.lanes).sum::<u64>();
        assert_eq!(from + location.cut_lanes, location.counts.lanes, "lanes from {id}");
        assert_eq!(visits(&location.active), location.counts.visits);
        assert_eq!(location.warp_visits.count(), location.warps);
        assert_eq!(location.trips.sum(), location.counts.lanes, "trips of {id}");
    }
}

fn times_add_up(analysis: &Analysis) {
    fn sum<'a>(times: impl Iterator<Item = &'a Option<Time>>) -> Option<Time> {
        times.fold(None, |mut sum: Option<Time>, time| {
            if let Some(time) = time {
                sum.get_or_insert_default().add(time);
            }
            sum
        })
    }
    let total = analysis.time.unwrap_or_default();
    let of = [
        sum(analysis.locations.iter().map(|row| &row.time)),
        sum(analysis.lines.iter().map(|row| &row.time)),
        sum(analysis.kernels.iter().map(|row| &row.time)),
    ];
    assert_eq!(of.map(Option::unwrap_or_default), [total; 3]);
    let cycles = analysis.warps.iter().filter_map(|warp| warp.time).map(|time| time.cycles);
    assert_eq!(cycles.fold(0, u64::saturating_add), total.warp_cycles);
    for location in &analysis.locations {
        let (time, visits) =
            (location.time.unwrap_or_default(), location.visit_cycles.clone().unwrap_or_default());
        assert_eq!((visits.sum(), visits.count()), (time.warp_cycles, time.timed_visits));
        assert!(time.timed_visits <= location.counts.visits);
    }
}

fn schedule_adds_up(analysis: &Analysis) {
    let Some(schedule) = &analysis.schedule else { return };
    for launch in &schedule.launches {
        assert!(launch.nanoseconds <= schedule.nanoseconds);
        let [busy, waiting, whole] =
            [launch.busy_nanoseconds, launch.waiting_nanoseconds, launch.nanoseconds].map(u128::from);
        assert!(busy + waiting <= whole * u128::from(launch.sms));
        assert!(launch.gap_nanoseconds == 0 || launch.overlap_nanoseconds == 0);
        assert_eq!(launch.longest.is_some(), launch.blocks > 0);
        let longest = launch.longest.and_then(|block| block.nanoseconds).unwrap_or(0);
        assert!(launch.median_block_nanoseconds <= longest);
        assert!(
            launch.last.is_none_or(|block| block.nanoseconds <= Some(longest) && block.wave <= launch.waves)
        );
    }
}

fn say(trace: &TraceFile, analysis: &Analysis) {
    let names = Names::new(trace);
    let sentences = [
        words::losses(analysis),
        words::finding(analysis, &names),
        words::work(analysis, 3).join("; "),
        words::groups(analysis),
    ];
    assert!(words::time(trace, analysis, &names).is_none_or(|sentence| !sentence.is_empty()));
    assert!(words::schedule(trace, analysis).iter().all(|sentence| !sentence.is_empty()));
    for sentence in sentences {
        assert!(!sentence.is_empty());
    }
    for cause in &analysis.causes {
        assert!(cause.reconverged() <= cause.divergences);
    }
    let lines = analysis.cause_lines();
    assert_eq!(lines.iter().map(|line| line.parts.len()).sum::<usize>(), analysis.causes.len());
    for line in &lines {
        let sum = line.parts.iter().fold(0, |sum: u64, part| sum.saturating_add(part.idle));
        assert!(line.whole.idle == sum && line.whole.reconverged() <= line.whole.divergences);
        assert!(!words::apart(analysis, &names, line).is_empty());
    }
}
