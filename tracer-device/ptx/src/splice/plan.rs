//! Markers of a function, and how they are recorded.

use std::collections::{BTreeMap, BTreeSet};

use warptrace_abi::log::MAX_KEY_COUNT;
use warptrace_format::Counting;

use super::exits::{self, Exit};
use super::sites::{self, Sites};
use super::{SpliceError, proof};
use crate::{
    Body, Cfg, Directive, Function, Instruction, ItemKind, Module, Operand, StatementKind, Terminator,
};
use warptrace_abi::marker::Marker;

/// Instructions at which lanes may diverge, reconverge or leave. Events are not moved across them.
pub(crate) const PARTING: [&str; 16] = [
    "bra",
    "brx",
    "ret",
    "exit",
    "trap",
    "call",
    "bar",
    "barrier",
    "vote",
    "shfl",
    "match",
    "activemask",
    "redux",
    "brkpt",
    "nanosleep",
    "wgmma",
];

#[derive(Clone, Copy, Debug)]
pub(super) struct MarkerPlace {
    pub(super) statement: usize,
    pub(super) marker: Marker,
    /// Number of events recorded here, with later markers that join this one; 0 if it joins an earlier one.
    pub(super) count: u32,
    in_loop: bool,
}

#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) places: Vec<MarkerPlace>,
    pub(super) loops: Vec<u16>,
    /// Whether control may reach the closing brace, which ends the thread.
    pub(super) falls_off_its_end: bool,
    /// Branches of a kernel that get separate ends.
    pub(super) exits: Vec<Exit>,
    /// Whether its control flow cannot be read. It then has no markers and cannot record.
    pub(super) unreadable: bool,
    /// Its data markers and sites, if it records data.
    pub(super) data: Vec<sites::DataPlace>,
    pub(super) sites: Sites,
}

/// Locations from this one on have modified keys in a function with a hot location.
const HOT_LIMIT: u16 = 1 << 15;

impl Plan {
    /// Finds the markers of a function. Consecutive events at one location in straight-line code join: lanes
    /// cannot diverge between them, so they are recorded as one run at the first marker.
    pub(super) fn new(
        module: &Module<'_>,
        function: &Function<'_>,
        body: &Body<'_>,
        counting: Counting,
    ) -> Result<Self, SpliceError> {
        let is_marker = |text: &&str| Marker::parse(text).is_some();
        let flow = match Cfg::new(body) {
            Ok(flow) => flow,
            Err(_) if !body.statements.iter().any(|it| it.comment().as_ref().is_some_and(is_marker)) => {
                return Ok(Self { unreadable: true, ..Self::default() });
            }
            Err(source) => return Err(SpliceError::flow(function)(source)),
        };
        let ends = |(index, block): (usize, &crate::Block)| {
            block.terminator == Terminator::End && flow.is_reachable(index)
        };
        let mut plan =
            Self { falls_off_its_end: flow.blocks().iter().enumerate().any(ends), ..Self::default() };
        let mut loops = BTreeSet::new();
        // Index and location of the marker that events can join.
        let mut open: Option<(usize, u16)> = None;
        for (index, statement) in body.statements.iter().enumerate() {
            match &statement.kind {
                StatementKind::Label(_) => open = None,
                StatementKind::Instruction(instruction) if PARTING.contains(&instruction.name()) => {
                    open = None;
                }
                StatementKind::Comment(text) => {
                    let Some(marker) = Marker::parse(text) else { continue };
                    let marker = marker.map_err(|error| {
                        SpliceError::marker(module, statement.span.start, error.to_string())
                    })?;
                    let in_loop = flow.loop_of(flow.block_of(index)).is_some();
                    let mut place = MarkerPlace { statement: index, marker, count: 0, in_loop };
                    if !matches!(marker, Marker::Event(_)) {
                        loops.insert(marker.location());
                    }
                    match marker.events() {
                        None => open = None,
                        Some((location, count)) => {
                            let first = open
                                .filter(|(_, open)| *open == location)
                                .map(|(first, _)| first)
                                .filter(|first| plan.places[*first].joins(marker, count));
                            match first {
                                Some(first) => plan.places[first].count += count,
                                None => {
                                    place.count = count;
                                    open = Some((plan.places.len(), location));
                                }
                            }
                        }
                    }
                    plan.places.push(place);
                }
                _ => {}
            }
        }
        let counted = match counting {
            Counting::Never => BTreeSet::new(),
            Counting::Proven => proof::proven(function, body, &flow, &plan.places),
            Counting::All => loops,
        };
        plan.loops = counted.into_iter().collect();
        if function.is_entry() {
            plan.exits = exits::find(body, &flow);
        }
        Ok(plan)
    }
}

impl Plan {
    /// Returns the markers on the way of a branch to the kernel's end.
    pub(super) fn places_in(&self, exit: &Exit) -> impl Iterator<Item = &MarkerPlace> {
        self.places.iter().filter(|place| exit.blocks.iter().any(|block| block.contains(&place.statement)))
    }

    /// Returns the data markers, all of values, on the way of a branch to the kernel's end.
    pub(super) fn data_in(&self, exit: &Exit) -> impl Iterator<Item = &sites::DataPlace> {
        self.data.iter().filter(|place| exit.blocks.iter().any(|block| block.contains(&place.statement)))
    }

    /// Returns the only location of events in loops, if one exists: most events repeat there, few runs end.
    pub(super) fn hot(&self, counting: Counting) -> Option<u16> {
        let counted = counting == Counting::All;
        let is_event = |place: &&MarkerPlace| !(counted && matches!(place.marker, Marker::Tick(..)));
        let locations = || {
            let events = self.places.iter().filter(is_event);
            events.filter_map(|place| place.marker.events().map(|(location, _)| (location, place.in_loop)))
        };
        let (hot, _) = locations().find(|(_, in_loop)| *in_loop)?;
        let fits = |(location, in_loop): (u16, bool)| location < HOT_LIMIT && (!in_loop || location == hot);
        locations().all(fits).then_some(hot)
    }
}

impl MarkerPlace {
    /// Returns true if `count` events of a marker at the same location can join this one. Ticks and plain
    /// events do not join, because counted loops record them differently.
    fn joins(&self, marker: Marker, count: u32) -> bool {
        matches!(self.marker, Marker::Tick(..)) == matches!(marker, Marker::Tick(..))
            && self.count + count <= MAX_KEY_COUNT
    }
}

/// Names that calls may use (a function's own name and its aliases), with the function to redirect to.
pub(super) type Callees<'a> = BTreeMap<&'a str, &'a str>;

/// Returns the operands of a function that are redirected to traced copies of `callees`: called functions,
/// and addresses if the body has indirect calls. Otherwise an address is only compared or stored, where an
/// untraced kernel may read it. Names that the body declares are not functions.
pub(super) fn led_to_copies<'b, 'a>(
    body: &'b Body<'a>,
    callees: &Callees<'a>,
) -> impl Iterator<Item = (&'b Operand<'a>, &'a str)> {
    if callees.is_empty() {
        return Vec::new().into_iter();
    }
    let own: BTreeSet<&str> = body
        .statements
        .iter()
        .filter_map(|statement| match &statement.kind {
            StatementKind::Directive(Directive::Registers(it) | Directive::Variable(it)) => Some(it),
            _ => None,
        })
        .flat_map(|declaration| &declaration.names)
        .filter(|declared| declared.count.is_none())
        .map(|declared| declared.name)
        .collect();
    let instructions = || body.instructions().map(|(_, instruction)| instruction);
    let calls_addresses = instructions().any(Instruction::is_indirect_call);
    let operands: Vec<(&Operand<'a>, &str)> = instructions()
        .filter(|instruction| calls_addresses || instruction.is_call())
        .flat_map(|instruction| &instruction.operands)
        .filter(|operand| !own.contains(operand.text))
        .filter_map(|operand| Some((operand, *callees.get(operand.text)?)))
        .collect();
    operands.into_iter()
}

pub(super) fn named<'a>(body: &Body<'a>, callees: &Callees<'a>) -> BTreeSet<&'a str> {
    led_to_copies(body, callees).map(|(_, function)| function).collect()
}

/// Returns the functions (kernels excluded) that contain markers or lead to a marker, by all their names.
pub(super) fn recording_functions<'a>(
    module: &Module<'a>,
    plans: &[(&'a Function<'a>, Plan)],
) -> Callees<'a> {
    let functions = || plans.iter().filter(|(function, plan)| !function.is_entry() && !plan.unreadable);
    let mut callees: Callees<'a> = functions().map(|(function, _)| (function.name, function.name)).collect();
    for item in &module.items {
        if let ItemKind::Alias { name, target } = item.kind
            && let Some(function) = callees.get(target).copied()
        {
            callees.insert(name, function);
        }
    }
    // For each function, the functions that name it.
    let mut named_by: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (function, _) in functions() {
        for callee in function.body.iter().flat_map(|body| named(body, &callees)) {
            named_by.entry(callee).or_default().push(function.name);
        }
    }
    let mut work: Vec<&str> =
        functions().filter(|(_, plan)| !plan.places.is_empty()).map(|(function, _)| function.name).collect();
    let mut recording = BTreeSet::new();
    while let Some(name) = work.pop() {
        if recording.insert(name) {
            work.extend(named_by.get(name).into_iter().flatten());
        }
    }
    callees.retain(|_, function| recording.contains(function));
    callees
}
