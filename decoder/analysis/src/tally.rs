//! The sums of one thread. Classes of warps come one after the other, the items of each in order.
//!
//! The warps of a class have the same events, which are counted once. Each sum is multiplied by the number of
//! warps in the class.

use std::ops::{ControlFlow, Range};

use warptrace_decoder::{WarpClass, WarpItem};
use warptrace_format::Event;
use warptrace_format::codec::Item;
use warptrace_format::file::LaunchInfo;

use crate::causes::Causes;
use crate::counts::Counts;
use crate::ends::Ends;
use crate::figures::WarpFigures;
use crate::nesting::Nesting;
use crate::path::{PathDigest, rename};
use crate::points::Points;
use crate::roles::Came;
use crate::selection::Selection;
use crate::times::{Clocks, WarpTime, spend_lanes};
use crate::transitions::Transitions;
use crate::visits::{AtLocation, Locations};
use crate::waits::Waits;
use crate::warps::WarpTable;
use crate::watch::Watch;

/// Items between two reports to the watch: some milliseconds.
const PUBLISHED_AT_ONCE: usize = 1 << 16;
/// Runs that are counted at once: they stay in the processor's first cache.
const RUNS_AT_ONCE: usize = 128;

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

impl Context<'_> {
    /// A number that warps share whose equal events give equal figures: of the first of these warps, and the
    /// end of those that have the same; `None` for those that are not selected.
    pub(crate) fn group(&self, mut warps: Range<u32>) -> (u32, Option<u64>) {
        let (has_warp, lanes, end);
        (warps.end, has_warp) = self.selection.has_first(self.launch, &warps);
        (warps.end, lanes) = self.launch.lanes_of(&warps);
        (warps.end, end) = self.ends.end_of_first(&warps);
        let group = (end as u64) << u32::BITS | u64::from(lanes.unwrap_or(u32::MAX));
        (warps.end, has_warp.then_some(group))
    }

    fn lanes(&self, warp: u32) -> u32 {
        self.launch.lane_mask(warp).unwrap_or(u32::MAX)
    }
}

/// Sums over warps, whatever their launch.
#[derive(Default)]
pub(crate) struct WarpSums {
    /// By location id.
    locations: Locations,
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
    pub(crate) warps: WarpTable,
    /// How many warps have events, whatever is looked at.
    pub(crate) warps_with_events: u64,
}

/// The class that is being counted.
struct Current {
    /// Its warps.
    class: WarpClass,
    first: u32,
    /// Lanes that each has.
    lanes: u32,
    /// How many.
    width: u32,
    path: PathDigest,
    last: u16,
    /// Locations that they came to.
    locations: Vec<u16>,
}

impl Current {
    /// Counts `times` visits of each warp.
    #[inline(always)]
    fn count(&mut self, event: Event, times: u64, points: &Points<'_>, locations: &mut Locations) {
        let at = usize::from(event.location);
        if locations.len() <= at {
            locations.resize_with(at + 1, || None);
        }
        let location =
            locations[at].get_or_insert_with(|| Box::new(AtLocation::new(points.weight_of(event.location))));
        if location.visit(event.mask, self.lanes, times, self.class.warps()) {
            self.locations.push(event.location);
        }
        self.last = event.location;
    }
}

/// Equal events in a row.
#[derive(Clone, Copy)]
struct TallyRun {
    event: Event,
    times: u32,
    /// When they began: as the trace says, then as it counts; `None` if that is not known.
    time: Option<u64>,
    /// Whether their lanes come from several events.
    is_meeting: bool,
}

/// What one thread counts of one launch.
pub(crate) struct Tally<'a> {
    context: Context<'a>,
    sums: WarpSums,
    current: Option<Current>,
    /// Of a trace with times.
    clocks: Option<Clocks>,
    /// For each of the lines with several locations the first warp of the class that came last, plus one.
    line_visitors: Vec<u64>,
    /// Runs of the current warp that are not counted yet.
    runs: Vec<TallyRun>,
    /// Memory for renamed events.
    body: Vec<Event>,
    /// Items that the watch has not heard of.
    unpublished: usize,
    /// Whether the processor has AVX2, counts bits and finds the lowest one.
    #[cfg(target_arch = "x86_64")]
    has_avx2: bool,
}

impl<'a> Tally<'a> {
    pub(crate) fn new(context: Context<'a>) -> Self {
        Self {
            context,
            sums: WarpSums {
                waits: context.is_timed.then(|| Waits::new(context.points)).flatten(),
                ..WarpSums::default()
            },
            current: None,
            clocks: context.is_timed.then(Clocks::default),
            line_visitors: Vec::new(),
            runs: Vec::with_capacity(RUNS_AT_ONCE),
            body: Vec::new(),
            unpublished: 0,
            #[cfg(target_arch = "x86_64")]
            has_avx2: is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("bmi1")
                && is_x86_feature_detected!("popcnt"),
        }
    }

    /// Takes the next item of a class, whose items follow each other. Answers `Break` if the watch stops the
    /// analysis.
    #[inline]
    pub(crate) fn take(&mut self, class: &WarpClass, found: WarpItem<'_>) -> ControlFlow<()> {
        if self.current.as_ref().is_none_or(|current| current.first != found.warp) {
            self.begin_class(class);
        }
        match found.item {
            Item::Run { event, times } => {
                self.runs.push(TallyRun { event, times, time: found.begin, is_meeting: true });
                if self.runs.len() < RUNS_AT_ONCE {
                    return ControlFlow::Continue(());
                }
                self.count_runs();
            }
            Item::Cycle { body, times } => {
                self.count_runs();
                self.count_cycle(body, times);
            }
        }
        if let Some(watch) = self.context.watch
            && self.unpublished >= PUBLISHED_AT_ONCE
        {
            self.publish(watch);
            if watch.is_stopped() {
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }

    /// Counts the runs that wait.
    fn count_runs(&mut self) {
        #[cfg(target_arch = "x86_64")]
        if self.has_avx2 {
            // SAFETY: the processor has all features that the function asks for.
            return unsafe { self.count_runs_avx2() };
        }
        self.count_runs_portably();
    }

    /// # Safety
    /// The processor has these features.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,popcnt")]
    unsafe fn count_runs_avx2(&mut self) {
        self.count_runs_portably();
    }

    /// Goes through the runs once for each kind of figures.
    #[inline(always)]
    fn count_runs_portably(&mut self) {
        let Self { current: Some(current), runs, sums, .. } = self else { return };
        self.unpublished += runs.len();
        for run in &*runs {
            current.count(run.event, run.times.into(), self.context.points, &mut sums.locations);
        }
        if let Some(waits) = &mut sums.waits {
            for run in &*runs {
                if let Some(begin) = run.time {
                    waits.push(run.event, begin);
                }
            }
        }
        if let Some(clocks) = &mut self.clocks {
            for TallyRun { event, times, time, .. } in &mut *runs {
                match time {
                    Some(time) => {
                        *time = clocks.push(*event, (*times).into(), *time, &mut sums.locations);
                    }
                    None => {
                        clocks.lose();
                        sums.untimed = sums.untimed.saturating_add((*times).into());
                    }
                }
            }
        }
        for TallyRun { event, times, time, is_meeting } in &mut *runs {
            let spent = |location, cycles| spend_lanes(&mut sums.locations, location, cycles);
            *is_meeting = sums.transitions.run(*event, (*times).into(), *time, spent);
        }
        for &TallyRun { event, times, .. } in &*runs {
            let event = self.context.renamed.map_or(event, |renamed| rename(event, renamed));
            current.path.push(&Item::Run { event, times });
        }
        for &TallyRun { event, times, .. } in &*runs {
            sums.nesting.run(event, times.into());
        }
        for &TallyRun { event, times, is_meeting, .. } in &*runs {
            sums.causes.run(event, times.into(), is_meeting);
        }
        runs.clear();
    }

    /// Counts a cycle, of which it is not known when it began.
    fn count_cycle(&mut self, body: &[Event], times: u32) {
        let Self { current: Some(current), sums, .. } = self else { return };
        self.unpublished += 1;
        for &event in body {
            current.count(event, times.into(), self.context.points, &mut sums.locations);
        }
        if let Some(clocks) = &mut self.clocks {
            clocks.lose();
            sums.untimed = sums.untimed.saturating_add(Item::Cycle { body, times }.events());
        }
        sums.transitions.cycle(body, times);
        match self.context.renamed {
            None => current.path.push(&Item::Cycle { body, times }),
            Some(renamed) => {
                self.body.clear();
                self.body.extend(body.iter().map(|&event| rename(event, renamed)));
                current.path.push(&Item::Cycle { body: &self.body, times });
            }
        }
        sums.nesting.cycle(body, times);
        sums.causes.cycle(body, times);
    }

    /// Adds what the watch has not heard of to what it shows.
    fn publish(&mut self, watch: &Watch) {
        self.unpublished = 0;
        let (width, warps) =
            self.current.as_ref().map_or((0, 0), |current| (current.width, current.class.warps()));
        for (id, location) in (0_u16..=u16::MAX).zip(&mut self.sums.locations) {
            let Some(location) = location else { continue };
            watch.add(id, &location.publish(width, warps));
        }
    }

    /// Ends the current class, if there is one, and begins another.
    fn begin_class(&mut self, class: &WarpClass) {
        let mut locations = self.end_class();
        locations.clear();
        let (first, warps) = (class.first(), class.warps());
        let lanes = self.context.lanes(first);
        let (width, path, class) = (lanes.count_ones(), PathDigest::default(), class.clone());
        self.current = Some(Current { class, first, lanes, width, path, last: 0, locations });
        if let Some(clocks) = &mut self.clocks {
            clocks.begin(lanes);
        }
        if let Some(waits) = &mut self.sums.waits {
            let each = self.context.launch.warps_per_block();
            waits.begin(first / each, first % each, lanes);
        }
        self.sums.transitions.begin(lanes, warps);
        self.sums.nesting.begin(warps);
        self.sums.causes.begin(lanes, warps);
    }

    /// Ends the current class; answers memory for the next one's locations.
    fn end_class(&mut self) -> Vec<u16> {
        self.count_runs();
        let Some(Current { class, first, width, path, last, locations, .. }) = self.current.take() else {
            return Vec::new();
        };
        let warps = class.warps();
        let end = self.context.ends.end_of_first(&(first..first + 1)).1;
        let launch = self.context.launch.number();
        self.sums.transitions.end(end.is_whole());
        self.sums.nesting.end();
        let each = self.context.launch.warps_per_block();
        let in_blocks = |run: &Range<u32>| run.clone().take(each as usize).map(|warp| 1_u32 << (warp % each));
        let numbers = class.runs().iter().flat_map(in_blocks).fold(0, std::ops::BitOr::bitor);
        let (mut counts, mut cycles, focus) = (Counts::default(), 0_u64, self.context.selection.focus);
        for &location in &locations {
            let at = usize::from(location);
            if let Some(Some(figures)) = self.sums.locations.get_mut(at) {
                let (more, time) = figures.end_class(width, numbers, warps);
                if focus.is_none_or(|focus| focus == location) {
                    counts.add(&more);
                    cycles = cycles.saturating_add(time);
                }
            }
            if let Some(line) = self.context.points.shared_line(location) {
                self.visit_line(line as usize, first, warps);
            }
        }
        let (path, median) = (path.value(), 0);
        let time = self.clocks.as_ref().map(|_| WarpTime { cycles, median_cycles: 0 });
        let (ran, role) = (None, None);
        let warp = first;
        let figures = WarpFigures { launch, warp, counts, time, ran, median, path, last, end, role };
        // With a focus only warps that came there are looked at.
        if focus.is_none() || counts.visits > 0 {
            self.sums.warps.push(&class, figures);
        }
        self.sums.warps_with_events += warps;
        locations
    }

    /// Counts warps that came to a line. `first` is the first of them.
    fn visit_line(&mut self, line: usize, first: u32, warps: u64) {
        if self.line_visitors.len() <= line {
            self.line_visitors.resize(line + 1, 0);
            self.sums.line_warps.resize(line + 1, 0);
        }
        let visitor = u64::from(first) + 1;
        if self.line_visitors[line] != visitor {
            self.line_visitors[line] = visitor;
            self.sums.line_warps[line] += warps;
        }
    }

    /// Both tallies' sums.
    pub(crate) fn merge(mut self, other: Self) -> Self {
        self.end_class();
        self.sums.merge(other.sums());
        self
    }

    /// Ends the current class, and the tally.
    pub(crate) fn sums(mut self) -> WarpSums {
        self.end_class();
        if let Some(watch) = self.context.watch {
            self.publish(watch);
        }
        self.sums
    }
}

impl WarpSums {
    /// Adds the sums of other warps.
    pub(crate) fn merge(&mut self, mut other: Self) {
        if self.locations.len() < other.locations.len() {
            std::mem::swap(&mut self.locations, &mut other.locations);
        }
        for (location, more) in self.locations.iter_mut().zip(other.locations) {
            match (location, more) {
                (Some(location), Some(more)) => {
                    location.merge(*more);
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
        self.warps.append(other.warps);
        self.warps_with_events += other.warps_with_events;
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
