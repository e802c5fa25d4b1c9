//! What one thread counts: warps come one after the other, their items in order.

use std::ops::ControlFlow;

use warptrace_decoder::WarpItem;
use warptrace_format::Event;
use warptrace_format::codec::Item;
use warptrace_format::file::LaunchInfo;

use crate::causes::Causes;
use crate::counts::Counts;
use crate::distribution::Distribution;
use crate::ends::{Ends, WarpEnd};
use crate::figures::{LANE_COUNTS, WarpFigures};
use crate::nesting::{Nesting, OpenLoop};
use crate::path::PathDigest;
use crate::points::Points;
use crate::roles::Came;
use crate::selection::Selection;
use crate::times::{Clocks, TimeAt, WarpTime, spend_lanes};
use crate::transitions::Transitions;
use crate::waits::Waits;
use crate::watch::Watch;

/// Items between two reports to the watch: some milliseconds.
const PUBLISHED_AT_ONCE: u32 = 1 << 16;

/// What is known of a launch before its events are.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) launch: &'a LaunchInfo,
    pub(crate) selection: &'a Selection,
    pub(crate) ends: &'a Ends,
    /// The trace's locations.
    pub(crate) points: &'a Points<'a>,
    /// For each location id the one that paths have instead of it.
    pub(crate) renamed: Option<&'a [u16]>,
    /// Whether the trace has times.
    pub(crate) is_timed: bool,
    /// Who reads what is counted so far.
    pub(crate) watch: Option<&'a Watch>,
}

/// Sums over warps, whatever their launch.
#[derive(Default)]
pub(crate) struct Sums {
    /// By location id.
    locations: Vec<Option<Box<AtLocation>>>,
    /// Warps that came to each of the lines with several locations.
    line_warps: Vec<u64>,
    pub(crate) transitions: Transitions,
    pub(crate) nesting: Nesting,
    pub(crate) causes: Causes,
    /// Events without a time, of a trace that has times.
    pub(crate) untimed: u64,
    /// Of a trace with times and waits.
    pub(crate) waits: Option<Waits>,
    /// In any order.
    pub(crate) warps: Vec<WarpFigures>,
    /// Unfinished warps with events, in any order.
    pub(crate) stopped: Vec<Stopped>,
}

/// What an unfinished warp did last.
pub(crate) struct Stopped {
    pub(crate) launch: u32,
    pub(crate) warp: u32,
    /// Location of its last event.
    pub(crate) last: u16,
    /// The loop that the lanes of the last event go round.
    pub(crate) round: Option<OpenLoop>,
    /// Locations of the other lanes' last events, and how many lanes.
    pub(crate) others: Vec<(u16, u32)>,
}

/// Figures of a location.
pub(crate) struct AtLocation {
    /// Visits by number of lanes.
    pub(crate) active: [u64; LANE_COUNTS],
    /// Idle lanes, summed over the visits.
    idle: u64,
    /// What a visit stands for.
    weight: u64,
    /// Visits by each warp that came.
    pub(crate) warp_visits: Distribution,
    /// Time spent; `None`: none that is known.
    pub(crate) time: Option<TimeAt>,
    /// Visits by the current warp.
    current: u64,
    /// Bit i: of a launch, warps with the number i in their blocks came.
    numbers: u32,
    /// What the watch has of these counts.
    published: Counts,
}

impl AtLocation {
    fn new(weight: u64) -> Self {
        Self {
            weight,
            active: [0; LANE_COUNTS],
            idle: 0,
            warp_visits: Distribution::default(),
            time: None,
            current: 0,
            numbers: 0,
            published: Counts::default(),
        }
    }

    pub(crate) fn counts(&self) -> Counts {
        let (mut visits, mut lanes) = (0_u64, 0_u64);
        for (active, &times) in (0_u64..).zip(&self.active) {
            visits = visits.saturating_add(times);
            lanes = lanes.saturating_add(times.saturating_mul(active));
        }
        Counts::of(visits, lanes, self.idle, self.weight)
    }
}

/// The warp that is being counted.
struct Current {
    warp: u32,
    /// Lanes that the warp has.
    lanes: u32,
    /// How many.
    width: u32,
    counts: Counts,
    path: PathDigest,
    last: u16,
    /// Lanes of the last event.
    active: u32,
    /// Locations that it came to.
    locations: Vec<u16>,
}

impl Current {
    /// Counts `times` visits of the warp.
    #[inline(always)]
    fn count(
        &mut self,
        event: Event,
        times: u64,
        (focus, points): (Option<u16>, &Points<'_>),
        locations: &mut Vec<Option<Box<AtLocation>>>,
    ) {
        let lanes = event.mask.count_ones();
        let idle = match event.mask & !self.lanes {
            0 => self.width - lanes,
            // Lanes that the warp does not have: an odd trace.
            _ => (self.lanes & !event.mask).count_ones(),
        };
        let idle = u64::from(idle).saturating_mul(times);
        let at = usize::from(event.location);
        if locations.len() <= at {
            locations.resize_with(at + 1, || None);
        }
        let location =
            locations[at].get_or_insert_with(|| Box::new(AtLocation::new(points.weight_of(event.location))));
        if focus.is_none_or(|focus| focus == event.location) {
            let lanes = u64::from(lanes).saturating_mul(times);
            self.counts.add(&Counts::of(times, lanes, idle, location.weight));
        }
        location.active[lanes as usize] = location.active[lanes as usize].saturating_add(times);
        location.idle = location.idle.saturating_add(idle);
        if location.current == 0 {
            self.locations.push(event.location);
        }
        location.current = location.current.saturating_add(times);
        self.last = event.location;
        self.active = event.mask;
    }
}

/// What one thread counts of one launch.
pub(crate) struct Tally<'a> {
    context: Context<'a>,
    sums: Sums,
    current: Option<Current>,
    /// Of a trace with times.
    clocks: Option<Clocks>,
    /// For each of the lines with several locations the warp that came last, plus one.
    line_visitors: Vec<u64>,
    /// Memory for renamed events.
    body: Vec<Event>,
    /// Items that the watch has not heard of.
    unpublished: u32,
    /// Whether the processor has AVX2, counts bits and finds the lowest one.
    #[cfg(target_arch = "x86_64")]
    has_avx2: bool,
}

impl<'a> Tally<'a> {
    pub(crate) fn new(context: Context<'a>) -> Self {
        Self {
            context,
            sums: Sums {
                waits: context.is_timed.then(|| Waits::new(context.points)).flatten(),
                ..Sums::default()
            },
            current: None,
            clocks: context.is_timed.then(|| Clocks::new(context.selection.focus)),
            line_visitors: Vec::new(),
            body: Vec::new(),
            unpublished: 0,
            #[cfg(target_arch = "x86_64")]
            has_avx2: is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("bmi1")
                && is_x86_feature_detected!("popcnt"),
        }
    }

    /// Takes the next item. Items of a warp follow each other. Answers `Break` if the watch stops the
    /// analysis.
    pub(crate) fn take(&mut self, found: WarpItem<'_>) -> ControlFlow<()> {
        #[cfg(target_arch = "x86_64")]
        if self.has_avx2 {
            // SAFETY: the processor has all features that the function asks for.
            return unsafe { self.take_avx2(&found) };
        }
        self.take_portably(&found)
    }

    /// # Safety
    /// The processor has these features.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,popcnt")]
    unsafe fn take_avx2(&mut self, found: &WarpItem<'_>) -> ControlFlow<()> {
        self.take_portably(found)
    }

    #[inline(always)]
    fn take_portably(&mut self, found: &WarpItem<'_>) -> ControlFlow<()> {
        // Not moved: copied at once, what the decoder has just written in parts is waited for.
        let (warp, item) = (found.warp, &found.item);
        if let Some(watch) = self.context.watch {
            self.unpublished += 1;
            if self.unpublished == PUBLISHED_AT_ONCE {
                self.publish(watch);
                if watch.is_stopped() {
                    return ControlFlow::Break(());
                }
            }
        }
        if self.current.as_ref().is_none_or(|current| current.warp != warp) {
            self.begin_warp(warp);
        }
        let Some(current) = &mut self.current else { return ControlFlow::Continue(()) };
        let locations = &mut self.sums.locations;
        let of = (self.context.selection.focus, self.context.points);
        // Each kind by itself: to read what only the other has would be to wait for the decoder's writes,
        // too.
        match item {
            Item::Run { event, times } => current.count(*event, (*times).into(), of, locations),
            Item::Cycle { body, times } => {
                body.iter().for_each(|&event| current.count(event, (*times).into(), of, locations));
            }
        }
        let now = self.clocks.as_mut().and_then(|clocks| clocks.push(found, locations));
        if now.is_none() && self.clocks.is_some() {
            self.sums.untimed = self.sums.untimed.saturating_add(item.events());
        }
        let spent = |location, cycles| spend_lanes(locations, location, cycles);
        self.sums.transitions.push(item, now, spent);
        if let (Some(waits), Some(begin), &[event]) = (&mut self.sums.waits, found.begin, item.body()) {
            waits.push(event, begin);
        }
        match self.context.renamed {
            None => current.path.push(item),
            Some(renamed) => current.path.push_renamed(item, renamed, &mut self.body),
        }
        self.sums.nesting.push(item);
        self.sums.causes.push(item);
        ControlFlow::Continue(())
    }

    /// Adds what the watch has not heard of to what it shows.
    fn publish(&mut self, watch: &Watch) {
        self.unpublished = 0;
        for (id, location) in (0_u16..=u16::MAX).zip(&mut self.sums.locations) {
            let Some(location) = location else { continue };
            let counts = location.counts();
            watch.add(id, &counts.since(&location.published));
            location.published = counts;
        }
    }

    /// Ends the current warp, if there is one, and begins another, unless it is not to be looked at.
    fn begin_warp(&mut self, warp: u32) {
        let mut locations = self.end_warp();
        let Context { launch, selection, .. } = self.context;
        if !selection.has_warp(launch, warp) {
            return;
        }
        locations.clear();
        let lanes = launch.lane_mask(warp).unwrap_or(u32::MAX);
        let (counts, path) = (Counts::default(), PathDigest::default());
        let width = lanes.count_ones();
        self.current = Some(Current { warp, lanes, width, counts, path, last: 0, active: 0, locations });
        if let Some(clocks) = &mut self.clocks {
            clocks.begin(lanes);
        }
        if let Some(waits) = &mut self.sums.waits {
            let each = launch.warps_per_block();
            waits.begin(warp / each, warp % each, lanes);
        }
        self.sums.transitions.begin(lanes);
        self.sums.nesting.begin();
        self.sums.causes.begin(lanes);
    }

    /// Ends the current warp; answers memory for the next one's locations.
    fn end_warp(&mut self) -> Vec<u16> {
        let Some(Current { warp, counts, path, last, active, locations, .. }) = self.current.take() else {
            return Vec::new();
        };
        let end = self.context.ends.of(warp);
        let launch = self.context.launch.number();
        if end == WarpEnd::Unfinished {
            let (round, others) =
                (self.sums.nesting.open_loop(active, last), self.sums.transitions.elsewhere(active));
            let others = others.collect();
            self.sums.stopped.push(Stopped { launch, warp, last, round, others });
        }
        self.sums.transitions.end(end.is_whole());
        self.sums.nesting.end();
        let number = 1 << (warp % self.context.launch.warps_per_block());
        for &location in &locations {
            let at = usize::from(location);
            if let Some(Some(figures)) = self.sums.locations.get_mut(at) {
                figures.warp_visits.add(std::mem::take(&mut figures.current), 1);
                figures.numbers |= number;
            }
            if let Some(line) = self.context.points.shared_line(location) {
                self.visit_line(line as usize, warp);
            }
        }
        let (path, median) = (path.value(), 0);
        let time = self.clocks.as_ref().map(|clocks| WarpTime { cycles: clocks.end(), median_cycles: 0 });
        let (ran, role) = (None, None);
        self.sums.warps.push(WarpFigures { launch, warp, counts, time, ran, median, path, last, end, role });
        locations
    }

    fn visit_line(&mut self, line: usize, warp: u32) {
        if self.line_visitors.len() <= line {
            self.line_visitors.resize(line + 1, 0);
            self.sums.line_warps.resize(line + 1, 0);
        }
        let visitor = u64::from(warp) + 1;
        if self.line_visitors[line] != visitor {
            self.line_visitors[line] = visitor;
            self.sums.line_warps[line] += 1;
        }
    }

    /// Both tallies' sums.
    pub(crate) fn merge(mut self, other: Self) -> Self {
        self.end_warp();
        self.sums.merge(other.sums());
        self
    }

    /// Ends the current warp, and the tally.
    pub(crate) fn sums(mut self) -> Sums {
        self.end_warp();
        if let Some(watch) = self.context.watch {
            self.publish(watch);
        }
        self.sums
    }
}

impl Sums {
    /// Adds the sums of other warps.
    pub(crate) fn merge(&mut self, mut other: Self) {
        if self.locations.len() < other.locations.len() {
            std::mem::swap(&mut self.locations, &mut other.locations);
        }
        for (location, more) in self.locations.iter_mut().zip(other.locations) {
            match (location, more) {
                (Some(location), Some(more)) => {
                    for (count, more) in location.active.iter_mut().zip(more.active) {
                        *count = count.saturating_add(more);
                    }
                    location.idle = location.idle.saturating_add(more.idle);
                    location.published.add(&more.published);
                    location.warp_visits.merge(&more.warp_visits);
                    location.numbers |= more.numbers;
                    if let Some(more) = &more.time {
                        location.time.get_or_insert_default().merge(more);
                    }
                }
                (location @ None, more) => *location = more,
                (Some(_), None) => {}
            }
        }
        if self.line_warps.len() < other.line_warps.len() {
            std::mem::swap(&mut self.line_warps, &mut other.line_warps);
        }
        for (warps, more) in self.line_warps.iter_mut().zip(other.line_warps) {
            *warps += more;
        }
        self.transitions.merge(other.transitions);
        self.nesting.merge(other.nesting);
        self.causes.merge(other.causes);
        match (&mut self.waits, other.waits) {
            (Some(waits), Some(more)) => waits.merge(more),
            (waits @ None, more) => *waits = more,
            (Some(_), None) => {}
        }
        self.untimed = self.untimed.saturating_add(other.untimed);
        self.stopped.append(&mut other.stopped);
        if self.warps.is_empty() {
            self.warps = other.warps;
        } else {
            self.warps.append(&mut other.warps);
        }
    }

    /// The locations that warps came to, by id.
    pub(crate) fn locations(&self) -> impl Iterator<Item = (u16, &AtLocation)> {
        let found = (0_u16..=u16::MAX).zip(&self.locations);
        found.filter_map(|(id, location)| Some((id, location.as_deref()?)))
    }

    /// Which warps of each block came where, of the sums of one launch.
    pub(crate) fn came(&self) -> Vec<Came> {
        let came = |(location, at): (u16, &AtLocation)| Came {
            location,
            numbers: at.numbers,
            is_head: self.nesting.is_head(location),
        };
        self.locations().map(came).collect()
    }

    /// Whether warps came to a location.
    pub(crate) fn has_visits(&self, id: u16) -> bool {
        self.locations.get(usize::from(id)).is_some_and(Option::is_some)
    }

    /// Warps that came to a line with several locations.
    pub(crate) fn line_warps(&self, line: u32) -> u64 {
        self.line_warps.get(line as usize).copied().unwrap_or(0)
    }
}
