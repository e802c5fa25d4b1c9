//! Sums of one thread. Receives classes of warps one after another, and the items of each class in order.
//! Warps of a class have the same events, which are counted once and multiplied by the number of warps.

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

/// Items between two updates of the watch: some milliseconds.
const PUBLISHED_AT_ONCE: usize = 1 << 16;
/// Runs that are counted together. They fit into the L1 cache.
const RUNS_AT_ONCE: usize = 128;

#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) launch: &'a LaunchInfo,
    pub(crate) selection: &'a Selection,
    pub(crate) ends: &'a Ends,
    pub(crate) points: &'a Points<'a>,
    /// Location ids for paths, indexed by the trace's location id.
    pub(crate) renamed: Option<&'a [u16]>,
    pub(crate) is_timed: bool,
    pub(crate) watch: Option<&'a Watch>,
}

impl Context<'_> {
    /// Returns the end of a prefix of `warps` with a common group number, and that number; `None` if these
    /// warps are not selected. Warps with the same group number and equal events have equal figures.
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

#[derive(Default)]
pub(crate) struct WarpSums {
    locations: Locations,
    /// Warps that visited each line with several locations.
    line_warps: Vec<u64>,
    pub(crate) transitions: Transitions,
    pub(crate) nesting: Nesting,
    pub(crate) causes: Causes,
    /// Events without a time, if the trace has times.
    pub(crate) untimed: u64,
    pub(crate) waits: Option<Waits>,
    /// Figures of single warps, in any order.
    pub(crate) warps: WarpTable,
    pub(crate) warps_with_events: u64,
}

struct Current {
    class: WarpClass,
    first: u32,
    lanes: u32,
    width: u32,
    path: PathDigest,
    last: u16,
    locations: Vec<u16>,
}

impl Current {
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

#[derive(Clone, Copy)]
struct TallyRun {
    event: Event,
    times: u32,
    /// Start time, first as recorded, then as adjusted by [`Clocks`]; `None` if unknown.
    time: Option<u64>,
    is_reconvergence: bool,
}

pub(crate) struct Tally<'a> {
    context: Context<'a>,
    sums: WarpSums,
    current: Option<Current>,
    clocks: Option<Clocks>,
    /// For each line with several locations: 1 plus the first warp of the last class that visited it.
    line_visitors: Vec<u64>,
    runs: Vec<TallyRun>,
    body: Vec<Event>,
    unpublished: usize,
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

    /// Takes the next item of a class, whose items are consecutive. Returns `Break` if the watch is stopped.
    #[inline]
    pub(crate) fn take(&mut self, class: &WarpClass, found: WarpItem<'_>) -> ControlFlow<()> {
        if self.current.as_ref().is_none_or(|current| current.first != found.warp) {
            self.begin_class(class);
        }
        match found.item {
            Item::Run { event, times } => {
                self.runs.push(TallyRun { event, times, time: found.begin, is_reconvergence: true });
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

    fn count_runs(&mut self) {
        #[cfg(target_arch = "x86_64")]
        if self.has_avx2 {
            // SAFETY: `has_avx2` is set only if the processor supports all features of the function.
            return unsafe { self.count_runs_avx2() };
        }
        self.count_runs_portably();
    }

    /// # Safety
    /// The processor must support AVX2, BMI1 and POPCNT.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,popcnt")]
    unsafe fn count_runs_avx2(&mut self) {
        self.count_runs_portably();
    }

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
        for TallyRun { event, times, time, is_reconvergence } in &mut *runs {
            let spent = |location, cycles| spend_lanes(&mut sums.locations, location, cycles);
            *is_reconvergence = sums.transitions.run(*event, (*times).into(), *time, spent);
        }
        for &TallyRun { event, times, .. } in &*runs {
            let event = self.context.renamed.map_or(event, |renamed| rename(event, renamed));
            current.path.push(&Item::Run { event, times });
        }
        for &TallyRun { event, times, .. } in &*runs {
            sums.nesting.run(event, times.into());
        }
        for &TallyRun { event, times, is_reconvergence, .. } in &*runs {
            sums.causes.run(event, times.into(), is_reconvergence);
        }
        runs.clear();
    }

    /// Counts a cycle. Its start time is unknown.
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

    fn publish(&mut self, watch: &Watch) {
        self.unpublished = 0;
        let (width, warps) =
            self.current.as_ref().map_or((0, 0), |current| (current.width, current.class.warps()));
        for (id, location) in (0_u16..=u16::MAX).zip(&mut self.sums.locations) {
            let Some(location) = location else { continue };
            watch.add(id, &location.publish(width, warps));
        }
    }

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
        // With a focus, only warps that visited it have figures.
        if focus.is_none() || counts.visits > 0 {
            self.sums.warps.push(&class, figures);
        }
        self.sums.warps_with_events += warps;
        locations
    }

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

    pub(crate) fn merge(mut self, other: Self) -> Self {
        self.end_class();
        self.sums.merge(other.sums());
        self
    }

    pub(crate) fn sums(mut self) -> WarpSums {
        self.end_class();
        if let Some(watch) = self.context.watch {
            self.publish(watch);
        }
        self.sums
    }
}

impl WarpSums {
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

    pub(crate) fn locations(&self) -> impl Iterator<Item = (u16, &AtLocation)> {
        let found = (0_u16..=u16::MAX).zip(&self.locations);
        found.filter_map(|(id, location)| Some((id, location.as_deref()?)))
    }

    pub(crate) fn came(&self) -> Vec<Came> {
        let came = |(location, at): (u16, &AtLocation)| Came {
            location,
            numbers: at.numbers,
            is_head: self.nesting.is_head(location),
        };
        self.locations().map(came).collect()
    }

    pub(crate) fn has_visits(&self, id: u16) -> bool {
        self.locations.get(usize::from(id)).is_some_and(Option::is_some)
    }

    pub(crate) fn line_warps(&self, line: u32) -> u64 {
        self.line_warps.get(line as usize).copied().unwrap_or(0)
    }
}
