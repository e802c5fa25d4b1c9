//! Where warps stand that did not finish: which loop they go round, and which of their lanes are elsewhere.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::order::OrderItems;
use warptrace_decoder::TraceFile;
use warptrace_format::LocationKind;
use warptrace_format::file::{LaunchInfo, LocationInfo};

use crate::ends::Silent;
use crate::figures::{NotCome, Standing, StandingAt, StandingLanes, StandingWarp};
use crate::selection::kernel_name;
use crate::tally::Stopped;

/// Warps that do the same.
struct Group {
    standing: Standing,
    last: BTreeMap<u16, u64>,
    others: BTreeMap<u16, u64>,
}

impl Group {
    fn new(kernel: &str, first: StandingWarp) -> Self {
        let (kernel, head, last, others) = (kernel.to_owned(), None, Vec::new(), Vec::new());
        let (waits_at, not_come) = (None, Vec::new());
        let standing = Standing {
            kernel,
            head,
            trips: u64::MAX,
            since: 0,
            last,
            others,
            waits_at,
            not_come,
            warps: 0,
            first,
        };
        Self { standing, last: BTreeMap::new(), others: BTreeMap::new() }
    }

    fn add(&mut self, stopped: &Stopped) {
        *self.last.entry(stopped.last).or_default() += 1;
        for &(location, lanes) in &stopped.others {
            *self.others.entry(location).or_default() += u64::from(lanes);
        }
        let Some(round) = stopped.round else { return };
        let standing = &mut self.standing;
        standing.head = Some(round.head);
        standing.trips = standing.trips.min(round.trips);
        standing.since = standing.since.max(round.since);
    }

    fn finish(self) -> Standing {
        let mut standing = self.standing;
        if standing.head.is_none() {
            standing.trips = 0;
        }
        standing.last =
            self.last.into_iter().map(|(location, warps)| StandingAt { location, warps }).collect();
        standing.last.order_by_key(|at| Reverse(at.warps));
        standing.others =
            self.others.into_iter().map(|(location, lanes)| StandingLanes { location, lanes }).collect();
        standing.others.order_by_key(|at| Reverse(at.lanes));
        standing
    }
}

/// Groups warps that did not finish: most warps first. `silent` are those without events.
pub(crate) fn standing(
    trace: &TraceFile,
    stopped: &[Stopped],
    silent: &[Silent],
    launches: &BTreeMap<u32, &LaunchInfo>,
) -> Vec<Standing> {
    // By kernel, head of the loop, and where there is none the last location.
    let mut groups: BTreeMap<(u32, Option<u16>, Option<u16>), Group> = BTreeMap::new();
    let with_events = stopped.iter().map(|stopped| {
        let first = StandingWarp { launch: stopped.launch, warp: stopped.warp };
        (first, 1, Some(stopped))
    });
    for (first, warps, stopped) in
        with_events.chain(silent.iter().map(|silent| (silent.first, silent.warps, None)))
    {
        let Some(info) = launches.get(&first.launch) else { continue };
        let head = stopped.and_then(|stopped| stopped.round).map(|round| round.head);
        let last = stopped.filter(|_| head.is_none()).map(|stopped| stopped.last);
        let new = || Group::new(kernel_name(trace, info), first);
        let group = groups.entry((info.kernel(), head, last)).or_insert_with(new);
        group.standing.warps += warps;
        group.standing.first = group.standing.first.min(first);
        if let Some(stopped) = stopped {
            group.add(stopped);
        }
    }
    let mut groups: Vec<Standing> = groups.into_values().map(Group::finish).collect();
    for group in &mut groups {
        group.waits_at = group.last.first().map(|at| at.location).filter(|at| is_barrier(trace, *at));
        if let Some(barrier) = group.waits_at {
            group.not_come = not_come(trace, barrier, stopped, launches);
        }
    }
    groups.order_by_key(|group| Reverse(group.warps));
    groups
}

fn info(trace: &TraceFile, location: u16) -> Option<&LocationInfo> {
    trace.metadata().locations.iter().find(|info| info.id == location)
}

fn is_barrier(trace: &TraceFile, location: u16) -> bool {
    info(trace, location).is_some_and(|info| info.kind == LocationKind::Barrier)
}

/// Finds the warps whose last event is at no place of a barrier at which other warps of their blocks wait.
fn not_come(
    trace: &TraceFile,
    barrier: u16,
    stopped: &[Stopped],
    launches: &BTreeMap<u32, &LaunchInfo>,
) -> Vec<NotCome> {
    let number = |location: u16| {
        let wait = info(trace, location)?.wait.as_deref()?;
        Some(&*wait.barrier).filter(|number| !number.contains('?') && !number.is_empty())
    };
    let block = |stopped: &Stopped| {
        let info = launches.get(&stopped.launch)?;
        Some((stopped.launch, stopped.warp / info.warps_per_block().max(1)))
    };
    let own = number(barrier);
    // By location, whether a warp that stands there has come.
    let mut known: BTreeMap<u16, bool> = BTreeMap::new();
    let mut has_come = |location: u16| {
        *known.entry(location).or_insert_with(|| {
            location == barrier || is_barrier(trace, location) && own.is_some() && number(location) == own
        })
    };
    let waiting: BTreeSet<(u32, u32)> =
        stopped.iter().filter(|stopped| stopped.last == barrier).filter_map(block).collect();
    let mut found: BTreeMap<u16, NotCome> = BTreeMap::new();
    for stopped in stopped.iter().filter(|stopped| block(stopped).is_some_and(|it| waiting.contains(&it))) {
        if has_come(stopped.last) {
            continue;
        }
        let (location, first) = (stopped.last, StandingWarp { launch: stopped.launch, warp: stopped.warp });
        let at = found.entry(location).or_insert(NotCome { location, warps: 0, first });
        at.warps += 1;
        at.first = at.first.min(first);
    }
    let mut found: Vec<NotCome> = found.into_values().collect();
    found.order_by_key(|at| Reverse(at.warps));
    found
}
