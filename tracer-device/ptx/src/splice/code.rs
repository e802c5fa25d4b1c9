//! Statistics of compiled code by location: instructions per event, and whether loops are counted. An
//! instruction belongs to the nearest point that dominates it. If both sides of a branch have points, the
//! instructions of the sides belong to these, and instructions after the join to the point before the branch.
//! Instructions of a loop before its first point (the test of a `while`) belong to the last point that
//! dominates all latches of the loop. If paths fork without points, the instructions of all paths count.

use std::collections::BTreeMap;

use warptrace_format::Counting;

use super::plan::{MarkerPlace, Plan};
use super::{SpliceError, check_kernels};
use crate::points::with_named;
use crate::{Body, Cfg, Function, Module};

/// Statistics of the code at a location.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CodeAt {
    /// Instructions that belong to the points of this location, divided by the events that the points stand
    /// for, rounded to nearest, half up. Calls and guarded instructions count as one.
    pub instructions: u32,
    /// Whether the location is a loop that one of the kernels counts.
    pub is_counted: bool,
}

#[derive(Default)]
struct LocationSums {
    instructions: u64,
    events: u64,
    is_counted: bool,
}

/// Returns the statistics of `kernels` and of all functions that they name, for each location with a point.
/// Loops are counted as given by `counting`. Fails like [`splice`](super::splice) if the PTX is unreadable.
pub fn code_at(
    text: &str,
    kernels: &[&str],
    counting: Counting,
) -> Result<BTreeMap<u16, CodeAt>, SpliceError> {
    let module = Module::parse(text)?;
    check_kernels(&module, Some(kernels))?;
    let wanted = with_named(&module, kernels);
    let mut sums: BTreeMap<u16, LocationSums> = BTreeMap::new();
    for function in module.definitions().filter(|function| wanted.contains(function.name)) {
        let Some(body) = &function.body else { continue };
        add(&mut sums, &module, function, body, counting)?;
    }
    let code = sums.into_iter().map(|(location, LocationSums { instructions, events, is_counted })| {
        let events = events.max(1);
        let instructions = u32::try_from((2 * instructions + events) / (2 * events)).unwrap_or(u32::MAX);
        (location, CodeAt { instructions, is_counted })
    });
    Ok(code.collect())
}

fn add(
    sums: &mut BTreeMap<u16, LocationSums>,
    module: &Module<'_>,
    function: &Function<'_>,
    body: &Body<'_>,
    counting: Counting,
) -> Result<(), SpliceError> {
    let plan = Plan::new(module, function, body, counting)?;
    let is_point = |place: &&MarkerPlace| place.marker.events().is_some();
    let places: Vec<&MarkerPlace> = plan.places.iter().filter(is_point).collect();
    for (location, events) in places.iter().filter_map(|place| place.marker.events()) {
        let sum = sums.entry(location).or_default();
        sum.events += u64::from(events);
        sum.is_counted |= plan.loops.contains(&location);
    }
    if places.is_empty() {
        return Ok(());
    }
    let flow = Cfg::new(body).map_err(SpliceError::flow(function))?;
    let owners = Owners::new(&flow, &places);
    for block in (0..flow.blocks().len()).filter(|block| flow.is_reachable(*block)) {
        let mut owner = owners.before(block);
        let statements = flow.blocks()[block].statements.clone();
        let mut next = places.partition_point(|place| place.statement < statements.start);
        for statement in statements {
            if places.get(next).is_some_and(|place| place.statement == statement) {
                owner = Some(next);
                next += 1;
            } else if body.statements[statement].instruction().is_some()
                && let Some(owner) = owner
            {
                sums.entry(places[owner].marker.location()).or_default().instructions += 1;
            }
        }
    }
    Ok(())
}

/// Assignment of instructions to points. Points are indices in the list of a function's places.
struct Owners<'f> {
    flow: &'f Cfg,
    block_of: Vec<usize>,
    /// For each block, the points of its start and of its end, without regard to loops.
    ends: Vec<[Option<usize>; 2]>,
}

impl<'f> Owners<'f> {
    fn new(flow: &'f Cfg, places: &[&MarkerPlace]) -> Self {
        let block_of: Vec<usize> = places.iter().map(|place| flow.block_of(place.statement)).collect();
        let mut last = vec![None; flow.blocks().len()];
        for (point, block) in block_of.iter().enumerate() {
            last[*block] = Some(point);
        }
        // Set for a block when its dominators are known.
        let mut ends: Vec<Option<[Option<usize>; 2]>> = vec![None; flow.blocks().len()];
        for block in 0..ends.len() {
            let mut way = vec![block];
            while let Some(&this) = way.last() {
                let above = flow.immediate_dominator(this);
                match above.map(|above| (above, ends[above])) {
                    Some((above, None)) if ends[this].is_none() => way.push(above),
                    found => {
                        let before = found.and_then(|(_, ends)| ends).and_then(|[_, after]| after);
                        ends[this] = Some([before, last[this].or(before)]);
                        way.pop();
                    }
                }
            }
        }
        let ends = ends.into_iter().map(Option::unwrap_or_default).collect();
        Self { flow, block_of, ends }
    }

    fn before(&self, block: usize) -> Option<usize> {
        let [own, _] = self.ends[block];
        let mut around = self.flow.loop_of(block);
        while let Some(this) = around {
            let is_inside = |point: &usize| self.flow.loop_contains(this, self.block_of[*point]);
            if own.as_ref().is_some_and(is_inside) {
                return own;
            }
            if let Some(back) = self.leads_back(this).filter(is_inside) {
                return Some(back);
            }
            around = self.flow.loops()[this].parent;
        }
        own
    }

    /// Returns the last point that dominates all latches of a loop.
    fn leads_back(&self, this: usize) -> Option<usize> {
        let latches = &self.flow.loops()[this].latches;
        let mut block = *latches.first()?;
        while !latches.iter().all(|latch| self.flow.dominates(block, *latch)) {
            block = self.flow.immediate_dominator(block)?;
        }
        let [_, after] = self.ends[block];
        after
    }
}
