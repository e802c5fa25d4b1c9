//! Computes the figures of a trace.

use std::collections::BTreeMap;

use crate::order::OrderItems;
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use warptrace_decoder::{TraceFile, WarpFilter};
use warptrace_format::file::LaunchInfo;

use crate::counts::Counts;
use crate::distribution::Distribution;
use crate::ends;
use crate::error::AnalysisError;
use crate::figures::{
    Analysis, Cause, CausePlace, Edge, KernelFigures, LANE_COUNTS, LineFigures, LocationFigures, Losses,
    PathGroup, Point, Reconvergence, WarpFigures, edges_from,
};
use crate::host::HostSchedule;
use crate::pairs::Sum;
use crate::points::Points;
use crate::roles;
use crate::roll_up::{PartKind, roll_up};
use crate::schedule;
use crate::selection::{Selection, kernel_name};
use crate::tally::{Context, Tally, WarpSums};
use crate::times::Time;
use crate::transitions::OUTSIDE;
use crate::visits::{AtLocation, TimeAt};
use crate::warps::WarpTable;
use crate::watch::Watch;

/// Computes the figures of the selected launches and warps, on all cores of rayon's current pool. Reads the
/// compressed events once, without expanding runs and cycles. The result does not depend on the number of
/// cores. Fails if the trace lacks a selected item, is damaged, or has over 2^20 distinct edges or causes.
///
/// Uses the memory of [`TraceFile::fold_items`] and:
///
/// - some KiB for each location on each core, and 24 bytes for each distinct edge;
/// - 136 bytes for each class of warps of a launch, and 16 for each run of its warps;
/// - with run times of warps: 152 bytes for each warp, 32 for each block of a launch, and 8 for its warps.
pub fn analyse(trace: &TraceFile, selection: &Selection) -> Result<Analysis, AnalysisError> {
    Ok(whole(analyse_with(Points::new(trace), trace, selection, None, None)?))
}

/// Like [`analyse`], but another thread can read counts from `watch`; `None` if it stopped the analysis.
pub fn analyse_watched(
    trace: &TraceFile,
    selection: &Selection,
    watch: &Watch,
) -> Result<Option<Analysis>, AnalysisError> {
    analyse_with(Points::new(trace), trace, selection, None, Some(watch))
}

/// Like [`analyse`], with the location ids in `renamed` for paths, and the weights of slots in `points`.
pub(crate) fn analyse_renamed(
    points: Points<'_>,
    trace: &TraceFile,
    selection: &Selection,
    renamed: Option<&[u16]>,
) -> Result<Analysis, AnalysisError> {
    Ok(whole(analyse_with(points, trace, selection, renamed, None)?))
}

fn whole(analysis: Option<Analysis>) -> Analysis {
    analysis.expect("only a watch stops an analysis")
}

fn analyse_with(
    points: Points<'_>,
    trace: &TraceFile,
    selection: &Selection,
    renamed: Option<&[u16]>,
    watch: Option<&Watch>,
) -> Result<Option<Analysis>, AnalysisError> {
    let launches = selection.launches(trace)?;
    let mut losses = Losses {
        assumed: trace.metadata().assumption(),
        cut_off: trace.completeness().cut_off(),
        not_traced: trace.not_traced(),
        ..Losses::default()
    };
    let mut sums = WarpSums::default();
    let mut kernels: BTreeMap<u32, KernelFigures> = BTreeMap::new();
    let (mut all_ends, mut roles) = (Vec::new(), Vec::new());
    let read: Vec<_> = launches.par_iter().map(|(info, _)| ends::read(trace, info, selection)).collect();
    for (read, (info, _)) in read.into_iter().zip(&launches) {
        let (ends, of_launch) = read?;
        all_ends.push(ends);
        losses.merge(of_launch);
        if !trace.is_untraced(info) {
            losses.unchosen_warps += selection.unchosen(info);
        }
    }
    if losses.is_whole() && selection.is_everything() {
        // The sums of losses show neither a failed launch with all accounts nor a launch without any data.
        losses.cut_off.clone_from(&trace.state().lacks);
    }
    if let Some(watch) = watch {
        watch.set_losses(&losses);
    }
    let is_timed = trace.has_times();
    for group in trace.side_by_side(launches.iter().map(|(info, _)| info.number())) {
        let tally_one = |at: usize| {
            let ((launch, filter), ends) = (&launches[at], &all_ends[at]);
            let context = Context { launch, selection, ends, points: &points, renamed, is_timed, watch };
            tally(trace, context, filter)
        };
        let tallied: Vec<_> = group.clone().into_par_iter().map(tally_one).collect();
        for ((info, _), of_launch) in launches[group].iter().zip(tallied) {
            let Some(mut of_launch) = of_launch? else { return Ok(None) };
            let kernel =
                kernels.entry(info.kernel()).or_insert_with(|| no_launch(kernel_name(trace, info), is_timed));
            let found = add_launch(&points, kernel, &mut of_launch)?;
            let role = |warp| found.as_ref()?.role(warp % info.warps_per_block());
            of_launch.warps.finish_launch(found.is_some().then_some(role));
            if let Some(found) = found {
                found.add_to(&mut roles, kernel_name(trace, info), info.number());
            }
            sums.merge(of_launch);
        }
    }
    let edges = edges(&mut sums)?;
    let charges = sums.causes.charges().ok_or(AnalysisError::TooManyEdges)?;
    let reconvergences = sums.causes.reconvergences().ok_or(AnalysisError::TooManyEdges)?;
    let causes = causes(&points, &sums, &charges, &reconvergences, &edges);
    losses.untimed_events = is_timed.then_some(sums.untimed);
    let locations = locations(&points, &sums, &causes, is_timed);
    let lines = lines(&points, &locations, &sums);
    let mut warps = std::mem::take(&mut sums.warps);
    let mut schedule = None;
    if trace.has_spans() {
        let mut each: Vec<WarpFigures> = warps.iter().collect();
        let (read, unplaced) =
            schedule::read(trace, launches.iter().map(|(info, _)| info), selection, &mut each)?;
        (schedule, losses.unplaced_warps) = (Some(read), Some(unplaced));
        warps = each.into_iter().collect();
    }
    let host = HostSchedule::new(trace, launches.iter().map(|(info, _)| info));
    let (mut counts, mut active) = (Counts::default(), vec![0; LANE_COUNTS]);
    let (mut warp_events, mut time) = (Distribution::default(), is_timed.then(Time::default));
    for kernel in kernels.values() {
        counts.add(&kernel.counts);
        add_time(&mut time, kernel.time);
        add_each(&mut active, &kernel.active);
        warp_events.merge(&kernel.warp_events);
    }
    let kernel_of: BTreeMap<u32, &LaunchInfo> =
        launches.iter().map(|(info, _)| (info.number(), info)).collect();
    let paths = paths(&warps, &kernel_of);
    let waits = sums.waits.map(|waits| waits.figures(&points)).unwrap_or_default();
    let (launches, kernels) = (launches.len() as u64, kernels.into_values().collect());
    let weight = points.weight();
    let mut analysis = Analysis {
        losses,
        weight,
        launches,
        counts,
        time,
        active,
        kernels,
        locations,
        lines,
        edges,
        causes,
        warps,
        warp_events,
        paths,
        roles,
        schedule,
        host,
        waits,
    };
    if is_timed {
        add_loops(trace, &mut analysis);
    }
    Ok(Some(analysis))
}

fn tally(
    trace: &TraceFile,
    context: Context<'_>,
    filter: &WarpFilter,
) -> Result<Option<WarpSums>, AnalysisError> {
    let number = context.launch.number();
    if context.watch.is_some_and(Watch::is_stopped) {
        return Ok(None);
    }
    let new = || Tally::new(context);
    let group = |warp| context.group(warp);
    let tally = trace.fold_items((number, 0), filter, group, new, Tally::take, Tally::merge)?;
    let mut sums = tally.map(Tally::sums);
    if let Some(waits) = sums.as_mut().and_then(|sums| sums.waits.as_mut()) {
        waits.end_launch();
    }
    Ok(sums)
}

fn no_launch(kernel: &str, is_timed: bool) -> KernelFigures {
    KernelFigures {
        kernel: kernel.to_owned(),
        launches: 0,
        counts: Counts::default(),
        time: is_timed.then(Time::default),
        warps: 0,
        active: vec![0; LANE_COUNTS],
        causes: BTreeMap::new(),
        locations: BTreeMap::new(),
        times: BTreeMap::new(),
        edges: Vec::new(),
        warp_events: Distribution::default(),
    }
}

/// Adds the sums of a launch to its kernel. Returns the roles of its warps if it has several.
fn add_launch(
    points: &Points<'_>,
    kernel: &mut KernelFigures,
    launch: &mut WarpSums,
) -> Result<Option<roles::FoundRoles>, AnalysisError> {
    for ((cause, location), sum) in launch.causes.charges().ok_or(AnalysisError::TooManyEdges)? {
        let idle = kernel.causes.entry(cause).or_default();
        *idle = idle.saturating_add(sum.amount.saturating_mul(points.weight_of(location)));
    }
    let edges = edges(launch)?;
    let found = roles::find(&launch.came(), &edges);
    kernel.edges = if kernel.edges.is_empty() { edges } else { joined(&kernel.edges, &edges) };
    kernel.launches += 1;
    for (id, location) in launch.locations() {
        let counts = location.counts();
        kernel.counts.add(&counts);
        kernel.locations.entry(id).or_default().add(&counts);
        add_each(&mut kernel.active, &location.active);
        if let Some(at) = &location.time {
            kernel.times.entry(id).or_default().add(&at.time);
            add_time(&mut kernel.time, Some(at.time));
        }
    }
    kernel.warps += launch.warps_with_events;
    let events = launch.warps.distinct().map(|(warp, warps)| (warp.counts.visits, warps));
    events.for_each(|(events, warps)| kernel.warp_events.add(events, warps));
    Ok(found)
}

pub(crate) fn add_time(time: &mut Option<Time>, more: Option<Time>) {
    if let Some(more) = more {
        time.get_or_insert_default().add(&more);
    }
}

fn add_loops(trace: &TraceFile, analysis: &mut Analysis) {
    let mut loops: BTreeMap<u16, u64> = BTreeMap::new();
    for (part, kernel) in roll_up(trace, analysis).iter().zip(&analysis.kernels) {
        part.each_location(&mut Vec::new(), &mut |location, around| {
            let cycles = kernel.times.get(&location).map_or(0, |time| time.lane_cycles);
            for head in around.iter().filter(|part| part.kind == PartKind::Loop) {
                let sum = loops.entry(head.location.unwrap_or_default()).or_default();
                *sum = sum.saturating_add(cycles);
            }
        });
    }
    for head in analysis.locations.iter_mut().filter(|location| location.trips.max() > 1) {
        head.loop_lane_cycles = loops.get(&head.point.location).copied();
    }
}

pub(crate) fn add_each(counts: &mut [u64], more: &[u64]) {
    for (count, more) in counts.iter_mut().zip(more) {
        *count = count.saturating_add(*more);
    }
}

fn edges(sums: &mut WarpSums) -> Result<Vec<Edge>, AnalysisError> {
    let edges = sums.transitions.edges().ok_or(AnalysisError::TooManyEdges)?;
    let end = |location| if location == OUTSIDE { None } else { Some(location) };
    let edges = edges.into_iter().map(|((from, to), steps)| Edge {
        from: end(from),
        to: end(to),
        visits: steps.times,
        lanes: steps.amount,
    });
    Ok(edges.collect())
}

/// Merges two sorted lists of edges; adds the counts of equal edges.
pub(crate) fn joined(one: &[Edge], other: &[Edge]) -> Vec<Edge> {
    let (mut rest, mut all) = ((one, other), Vec::with_capacity(one.len()));
    let key = |edge: &Edge| (edge.from, edge.to);
    loop {
        let (taken, left) = match rest {
            ([a, more @ ..], [b, others @ ..]) if key(a) == key(b) => {
                let (visits, lanes) = (a.visits.saturating_add(b.visits), a.lanes.saturating_add(b.lanes));
                (Edge { visits, lanes, ..*a }, (more, others))
            }
            ([a, more @ ..], others) if others.first().is_none_or(|b| key(a) < key(b)) => {
                (*a, (more, others))
            }
            (more, [b, others @ ..]) => (*b, (more, others)),
            _ => return all,
        };
        all.push(taken);
        rest = left;
    }
}

/// Joins the charges and reconvergences of [`Causes`](crate::causes::Causes), which are sorted by cause.
fn causes(
    points: &Points,
    sums: &WarpSums,
    charges: &[((u16, u16), Sum)],
    reconvergences: &[((u16, u16), Sum)],
    edges: &[Edge],
) -> Vec<Cause> {
    let decisions = points.decisions(|id| sums.has_visits(id));
    let causes = charges.chunk_by(|a, b| a.0.0 == b.0.0).map(|charges| {
        let id = charges[0].0.0;
        // A branch inside a loop is not the decision that keeps lanes out after they left the loop.
        let is_of_loop = id == OUTSIDE || charges.iter().any(|((_, location), _)| *location == id);
        let place = |&((_, location), sum): &((u16, u16), Sum)| CausePlace {
            location,
            decision: match is_of_loop {
                true => id,
                false => decisions.decision(id, location, |to| {
                    edges_from(edges, Some(id)).iter().any(|edge| edge.to == Some(to))
                }),
            },
            idle: sum.amount.saturating_mul(points.weight_of(location)),
        };
        let mut places: Vec<CausePlace> = charges.iter().map(place).collect();
        places.order_by_key(|place| std::cmp::Reverse(place.idle));
        let from = reconvergences.partition_point(|((cause, _), _)| *cause < id);
        let met = reconvergences[from..].iter().take_while(|((cause, _), _)| *cause == id);
        let mut reconvergences: Vec<Reconvergence> = met
            .map(|&((_, location), sum)| Reconvergence { location, times: sum.times, events: sum.amount })
            .collect();
        reconvergences.order_by_key(|reconvergence| std::cmp::Reverse(reconvergence.times));
        let idle = places.iter().fold(0_u64, |sum, place| sum.saturating_add(place.idle));
        Cause {
            point: points.point(id),
            idle,
            divergences: sums.causes.divergences(id),
            places,
            reconvergences,
        }
    });
    let mut causes: Vec<Cause> = causes.collect();
    causes.order_by_key(|cause| std::cmp::Reverse(cause.idle));
    causes
}

fn locations(points: &Points, sums: &WarpSums, causes: &[Cause], is_timed: bool) -> Vec<LocationFigures> {
    let mut caused: BTreeMap<u16, u64> = BTreeMap::new();
    for place in causes.iter().flat_map(|cause| &cause.places) {
        let sum = caused.entry(place.decision).or_default();
        *sum = sum.saturating_add(place.idle);
    }
    let figures = |(id, found): (u16, &AtLocation)| LocationFigures {
        point: points.point(id),
        counts: found.counts(),
        time: is_timed.then(|| found.time.as_ref().map_or_else(Time::default, |at| at.time)),
        visit_cycles: is_timed
            .then(|| found.time.as_ref().map_or_else(Distribution::default, TimeAt::visits)),
        loop_lane_cycles: None,
        caused: caused.get(&id).copied().unwrap_or(0),
        warps: found.warp_visits.count(),
        active: found.active.to_vec(),
        splits: sums.transitions.splits(id),
        cut_lanes: sums.transitions.cut(id),
        trips: sums.nesting.trips(id),
        warp_visits: found.warp_visits.clone(),
    };
    sums.locations().map(figures).collect()
}

fn lines(points: &Points, locations: &[LocationFigures], sums: &WarpSums) -> Vec<LineFigures> {
    let mut lines: BTreeMap<(&str, u32, u16), LineFigures> = BTreeMap::new();
    for location in locations {
        let Point { location: id, name, file, line, .. } = &location.point;
        let found = lines.entry(location.point.line_key()).or_insert_with(|| LineFigures {
            file: file.clone(),
            line: *line,
            names: Vec::new(),
            locations: Vec::new(),
            counts: Counts::default(),
            time: None,
            caused: 0,
            warps: points.shared_line(*id).map_or(location.warps, |line| sums.line_warps(line)),
            active: vec![0; LANE_COUNTS],
            splits: 0,
        });
        found.names.push(name.clone());
        found.locations.push(*id);
        found.counts.add(&location.counts);
        add_time(&mut found.time, location.time);
        found.caused = found.caused.saturating_add(location.caused);
        add_each(&mut found.active, &location.active);
        found.splits = found.splits.saturating_add(location.splits);
    }
    lines.into_values().collect()
}

fn paths(warps: &WarpTable, launches: &BTreeMap<u32, &LaunchInfo>) -> Vec<PathGroup> {
    let mut groups: FxHashMap<_, PathGroup> = FxHashMap::default();
    for (figures, more) in warps.distinct() {
        let &WarpFigures { launch, warp, counts, path, role, .. } = figures;
        let kernel = launches.get(&launch).map_or(0, |info| info.kernel());
        let new = PathGroup { path, warps: 0, launch, warp, role, counts };
        let group = groups.entry((kernel, role, path, counts.visits)).or_insert(new);
        let warps = group.warps + more;
        if (launch, warp) < (group.launch, group.warp) {
            *group = new;
        }
        group.warps = warps;
    }
    let mut groups: Vec<PathGroup> = groups.into_values().collect();
    groups.order_by_key(|group| (std::cmp::Reverse(group.warps), group.launch, group.warp));
    groups
}
