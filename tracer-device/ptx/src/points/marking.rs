//! Marks a module, function by function.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::barriers::{Barrier, Registers};
use super::copies::Copies;
use super::data_sites::{self, MarkedSite};
use super::params::layout;
use super::sites::{Plan, Site, insert_lines};
use super::source::{Lines, Sources, positions, users_place};
use super::waits::keeps_lanes;
use super::{
    Implied, KernelInfo, Marked, Point, PointCopy, PointError, PointKind, PointOptions, PointWait, Points,
};
use crate::splice::{DataMarker, Marker};
use crate::{Body, Cfg, Edits, Function, ItemKind, Module, StatementKind};

pub(super) struct Marking<'m> {
    text: &'m str,
    options: &'m PointOptions<'m>,
    sources: Sources<'m>,
    marked: Marked,
    edits: Edits,
    offsets: Vec<usize>,
    /// The next point's id. 65,536 if all ids are used.
    next: u32,
    /// Offsets in the original text of the sites, and of the copies and barriers of waits.
    site_offsets: Vec<usize>,
    copy_offsets: Vec<usize>,
    pointer_calls: Vec<(&'m str, usize)>,
}

impl<'m> Marking<'m> {
    pub(super) fn new(module: &Module<'m>, options: &'m PointOptions<'m>) -> Self {
        Self {
            text: module.text,
            options,
            sources: Sources::new(module, options.lines),
            marked: Marked::default(),
            edits: Edits::new(),
            offsets: Vec::new(),
            next: options.first_id.into(),
            site_offsets: Vec::new(),
            copy_offsets: Vec::new(),
            pointer_calls: Vec::new(),
        }
    }

    /// Marks a function, or stores the reason why it cannot be marked.
    pub(super) fn function(&mut self, function: &Function<'m>) {
        let Some(body) = &function.body else { return };
        if let Err(reason) = self.try_function(function, body) {
            self.marked.skipped.push((function.name.to_owned(), reason));
        }
    }

    /// Marks a function, or returns the reason why it cannot be marked, with the text unchanged.
    fn try_function(&mut self, function: &Function<'m>, body: &Body<'m>) -> Result<(), String> {
        let parameters = function.is_entry().then(|| layout(&function.params)).transpose()?;
        let flow = Cfg::new(body).map_err(|error| format!("its control flow cannot be read: {error}"))?;
        let plan = Plan::new(body, &flow, self.options);
        let (first, count) = (self.next, plan.sites.len());
        let end = u32::try_from(count).ok().and_then(|count| first.checked_add(count));
        let end = end.filter(|end| *end <= u32::from(u16::MAX) + 1);
        let too_many =
            || format!("its {count} points do not fit: ids end at 65,535, and the next is {first}");
        self.next = end.ok_or_else(too_many)?;
        // All ids of the function are at most 65,535.
        let id = |site: usize| u16::try_from(first as usize + site).unwrap_or(u16::MAX);
        let name: Arc<str> = function.name.into();
        let lines = self.sources.lines(function, body);
        let waits = plan.sites.iter().any(|site| site.kind == PointKind::Waited);
        let has_barrier = || body.instructions().any(|(_, instruction)| keeps_lanes(instruction));
        let registers = (waits || has_barrier()).then(|| Registers::new(body));
        let known = registers.as_ref().filter(|_| waits);
        let copies = known.map(|known| Copies::new(body, &flow, known, function.is_entry()));
        for (index, site) in plan.sites.iter().enumerate() {
            let wait = match (waits, &registers) {
                (false, Some(known)) => self.wait_in(site, body, known, &lines),
                _ => self.wait(site, body, registers.as_ref().zip(copies.as_ref()), &lines),
            };
            let of_function = (site.kind == PointKind::Entry).then(|| lines.of_function()).flatten();
            // With points at blocks, lanes diverge at the branch that ends a block: readers name the block by it.
            let branch = || site.branch(body, &flow).filter(|_| self.options.points == Points::Blocks);
            let (source, inlined_at) = of_function
                .or_else(|| lines.of_branch(branch()?))
                .unwrap_or_else(|| lines.first_of(site.statements.clone()));
            self.offsets.push(site.offset(body));
            self.marked.points.push(Point {
                id: id(index),
                function: Arc::clone(&name),
                kind: site.kind,
                block: site.block,
                // Set when all offsets are known.
                ptx_line: 0,
                ptx_column: 0,
                source,
                inlined_at,
                parent: site.parent.map_or(0, id),
                counted: site.counted,
                name: body.statements.get(site.statements.start).and_then(|it| site.name(it)).map(Arc::from),
                wait,
            });
        }
        plan.insert(&mut self.edits, self.text, id);
        self.marked.implied.extend(plan.implied.iter().map(|(after, points)| Implied {
            after: id(*after),
            points: points.iter().map(|point| id(*point)).collect(),
        }));
        let followed = |point: usize| {
            // A point without a marker executes together with the point that implies it.
            let before = plan.implied.iter().find(|(_, points)| points.contains(&point));
            before.map_or(point, |(after, _)| *after)
        };
        self.sites(function, body, &flow, &lines, |block| {
            plan.begins[block].map_or(0, |at| id(followed(at)))
        });
        let calls = body.instructions().filter(|(_, instruction)| instruction.is_indirect_call()).count();
        if calls > 0 {
            self.pointer_calls.push((function.name, calls));
        }
        if let Some(parameters) = parameters {
            self.marked.kernels.push(KernelInfo { name: function.name.to_owned(), parameters });
        }
        Ok(())
    }

    fn wait(
        &mut self,
        site: &Site,
        body: &Body<'m>,
        known: Option<(&Registers<'_, 'm>, &Copies<'_, 'm>)>,
        lines: &Lines,
    ) -> Option<Box<PointWait>> {
        let (registers, copies) = known?;
        if !matches!(site.kind, PointKind::Barrier | PointKind::Wait) {
            return None;
        }
        let statement = site.statements.start;
        let Barrier { name, phase } = registers.barrier(body.statements.get(statement)?.instruction()?);
        let awaited = copies.awaited(statement).unwrap_or_default();
        let copy = |copy: &usize| {
            self.copy_offsets.push(body.statements[*copy].span.start);
            let (source, _) = lines.first_of(*copy..*copy + 1);
            PointCopy { source, ptx_line: 0, ptx_column: 0 }
        };
        let copies = awaited.copies.iter().map(copy).collect();
        let at = None;
        Some(Box::new(PointWait { barrier: name, phase, copies, is_certain: awaited.is_certain, at }))
    }

    fn wait_in(
        &mut self,
        site: &Site,
        body: &Body<'m>,
        registers: &Registers<'_, 'm>,
        lines: &Lines,
    ) -> Option<Box<PointWait>> {
        if !matches!(site.kind, PointKind::Entry | PointKind::Block | PointKind::LoopBody) {
            return None;
        }
        let (statement, instruction) = site.statements.clone().find_map(|statement| {
            let instruction = body.statements.get(statement)?.instruction()?;
            keeps_lanes(instruction).then_some((statement, instruction))
        })?;
        let Barrier { name, phase } = registers.barrier(instruction);
        self.copy_offsets.push(body.statements[statement].span.start);
        let (source, calls) = lines.first_of(statement..statement + 1);
        let source = source.map(|source| users_place(source, &calls).0);
        // Set when all offsets are known.
        let at = Some(PointCopy { source, ptx_line: 0, ptx_column: 0 });
        Some(Box::new(PointWait { barrier: name, phase, at, ..PointWait::default() }))
    }

    /// Marks the requested accesses of a function. `location` returns the location id of a block's events.
    fn sites(
        &mut self,
        function: &Function<'m>,
        body: &Body<'m>,
        flow: &Cfg,
        lines: &Lines,
        location: impl Fn(usize) -> u16,
    ) {
        if self.options.accesses.is_none() {
            return;
        }
        let before = u32::try_from(self.marked.sites.len()).unwrap_or(u32::MAX);
        let first = u32::from(self.options.first_site).saturating_add(before);
        let found = data_sites::find(function, body, flow, (self.options.accesses, first), lines, location);
        for MarkedSite { site, at, marker } in found.sites {
            insert_lines(&mut self.edits, self.text, at, [marker].into_iter());
            self.site_offsets.push(at);
            self.marked.sites.push(site);
        }
        for (at, marker) in found.copies {
            insert_lines(&mut self.edits, self.text, at, [marker].into_iter());
        }
        let reasons = found.unrecorded.into_iter();
        self.marked.unrecorded.extend(reasons.map(|reason| (function.name.to_owned(), reason)));
    }

    /// Marks the accesses of a function that already has event markers.
    pub(super) fn own_function(&mut self, function: &Function<'m>) {
        let Some(body) = &function.body else { return };
        let flow = match Cfg::new(body) {
            Ok(flow) => flow,
            Err(error) => {
                let reason = format!("its control flow cannot be read: {error}");
                return self.marked.unrecorded.push((function.name.to_owned(), reason));
            }
        };
        let lines = self.sources.lines(function, body);
        let location = |block: usize| {
            let statements = &body.statements[flow.blocks()[block].statements.clone()];
            let markers =
                statements.iter().filter_map(|statement| statement.comment().and_then(Marker::parse));
            markers.flatten().find_map(Marker::events).map_or(0, |(location, _)| location)
        };
        self.sites(function, body, &flow, &lines, location);
    }

    pub(super) fn finish(mut self) -> Result<Marked, PointError> {
        for (position, point) in positions(self.text, &self.offsets).iter().zip(&mut self.marked.points) {
            (point.ptx_line, point.ptx_column) = (position.line, position.column);
        }
        for (position, site) in positions(self.text, &self.site_offsets).iter().zip(&mut self.marked.sites) {
            (site.ptx_line, site.ptx_column) = (position.line, position.column);
        }
        let waits = self.marked.points.iter_mut().filter_map(|point| point.wait.as_mut());
        let copies = waits.flat_map(|wait| wait.copies.iter_mut().chain(&mut wait.at));
        for (position, copy) in positions(self.text, &self.copy_offsets).iter().zip(copies) {
            (copy.ptx_line, copy.ptx_column) = (position.line, position.column);
        }
        self.marked.unrecorded.extend(self.called_by_pointer());
        self.marked.text = self.edits.apply(self.text)?;
        Ok(self.marked)
    }
}

impl Marking<'_> {
    /// Returns a message about calls through pointers, which are not recorded, for their first function.
    fn called_by_pointer(&self) -> Option<(String, String)> {
        let (&(first, calls), others) = self.pointer_calls.split_first()?;
        let counted =
            |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        let more = match others.iter().map(|(_, calls)| calls).sum::<usize>() {
            0 => String::new(),
            more => {
                format!(" (and {} in {})", counted(more, "call"), counted(others.len(), "other function"))
            }
        };
        let calls = counted(calls, "call");
        Some((
            first.to_owned(),
            format!(
                "{calls} through pointers{more}: a function whose address is read from memory runs there, but is not recorded"
            ),
        ))
    }
}

/// Rejects a module with data markers and, if `events` is true, with event markers.
pub(super) fn refuse_markers(module: &Module<'_>, events: bool) -> Result<(), PointError> {
    let bodies = module.definitions().filter_map(|function| function.body.as_ref());
    let mut statements = bodies.flat_map(|body| &body.statements);
    let marker = statements.find(|statement| match statement.kind {
        StatementKind::Comment(text) => {
            events && Marker::parse(text).is_some() || DataMarker::parse(text).is_some()
        }
        _ => false,
    });
    match marker.map(|marker| module.position(marker.span.start)) {
        None => Ok(()),
        Some(position) => Err(PointError::AlreadyMarked { line: position.line, column: position.column }),
    }
}

/// Returns the names of the functions to mark: the requested kernels, and all functions that they name.
pub(super) fn wanted_functions<'a>(
    module: &'a Module<'a>,
    options: &PointOptions<'_>,
) -> Result<BTreeSet<&'a str>, PointError> {
    let Some(kernels) = options.kernels else {
        return Ok(module.definitions().map(|function| function.name).collect());
    };
    let entries = || module.definitions().filter(|function| function.is_entry());
    for kernel in kernels {
        if !entries().any(|entry| entry.name == *kernel) {
            let known = entries().map(|entry| entry.name).collect::<Vec<_>>().join(", ");
            return Err(PointError::NoKernel { name: (*kernel).to_owned(), known });
        }
    }
    Ok(with_named(module, kernels))
}

/// Returns the names of these kernels and of all functions that they name, directly or indirectly.
pub(crate) fn with_named<'a>(module: &'a Module<'a>, kernels: &[&str]) -> BTreeSet<&'a str> {
    let mut by_name: HashMap<&str, &Function<'_>> =
        module.definitions().map(|function| (function.name, function)).collect();
    for item in &module.items {
        if let ItemKind::Alias { name, target } = item.kind
            && let Some(function) = by_name.get(target).copied()
        {
            by_name.insert(name, function);
        }
    }
    let is_asked = |function: &&Function<'_>| function.is_entry() && kernels.contains(&function.name);
    let mut work: Vec<&Function<'_>> = module.definitions().filter(is_asked).collect();
    let mut wanted: BTreeSet<&str> = work.iter().map(|entry| entry.name).collect();
    while let Some(function) = work.pop() {
        let Some(body) = &function.body else { continue };
        for operand in body.instructions().flat_map(|(_, instruction)| &instruction.operands) {
            if let Some(named) = by_name.get(operand.text).filter(|named| !named.is_entry())
                && wanted.insert(named.name)
            {
                work.push(named);
            }
        }
    }
    wanted
}
