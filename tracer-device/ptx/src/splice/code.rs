//! What the compiled code has at each location: how many instructions an event stands for, and whether a loop
//! is counted.
//!
//! An instruction belongs to the last point that all ways to it pass: the nearest one that dominates it. So
//! each belongs to one point at most. Those of both sides of a branch that have points of their own belong to
//! these, those behind the place where the sides meet to the point before the branch, whose lanes have met
//! there. In a loop, what stands before its first point (the test of a `while`) belongs to the last point
//! that all ways back to the loop's start pass. Where ways fork without points, the instructions of all of
//! them count.

use std::collections::BTreeMap;

use warptrace_format::Counting;

use super::plan::{MarkerPlace, Plan};
use super::{SpliceError, check_kernels};
use crate::points::with_named;
use crate::{Body, Cfg, Function, Module};

/// What the code of some kernels has at a location.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CodeAt {
    /// Instructions that belong to the points of this location, over the events that they stand for: rounded
    /// to the nearest number, a half up. A call is one instruction, and so is one under a predicate.
    pub instructions: u32,
    /// Whether the iterations of this loop are counted in one of the kernels.
    pub is_counted: bool,
}

/// Sums over the points of a location.
#[derive(Default)]
struct LocationSums {
    instructions: u64,
    events: u64,
    is_counted: bool,
}

/// Says what the code of `kernels` and of all functions that they name has at each location of which it has a
/// point, where loops are counted as `counting` says.
///
/// # Errors
/// As [`splice`](super::splice), as far as it reads the text.
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

/// To which point the instructions of blocks belong. Points are numbers in the list of a function's places.
struct Owners<'f> {
    flow: &'f Cfg,
    /// The block of each point.
    block_of: Vec<usize>,
    /// Of each block the point that its begin belongs to, and the one that its end does; loops aside.
    ends: Vec<[Option<usize>; 2]>,
}

impl<'f> Owners<'f> {
    fn new(flow: &'f Cfg, places: &[&MarkerPlace]) -> Self {
        let block_of: Vec<usize> = places.iter().map(|place| flow.block_of(place.statement)).collect();
        let mut last = vec![None; flow.blocks().len()];
        for (point, block) in block_of.iter().enumerate() {
            last[*block] = Some(point);
        }
        // Of each block that was reached, once all before it are known.
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

    /// The point that a block's begin belongs to.
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

    /// The last point that all ways back to a loop's start pass.
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
