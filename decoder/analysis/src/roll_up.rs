//! Sums over the parts of a program: kernels, functions, loops and locations.
//!
//! Loops are the strongly connected components of the control flow that lanes took. The head of a loop is the
//! location where most lanes enter. The components that remain without it are the inner loops (B.
//! Steensgaard, "Sequentializing Program Dependence Graphs for Irreducible Programs", 1993). Each location
//! and each function of a kernel has one place in the tree, so sums add up.

use std::collections::BTreeMap;

use crate::order::OrderItems;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;
use warptrace_decoder::TraceFile;

use crate::counts::Counts;
use crate::figures::{Analysis, Edge, KernelFigures};
use crate::times::Time;

/// Maximum nesting depth of loops. Deeper loops are not distinguished.
const MAX_DEPTH: usize = 24;

/// Kind of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum PartKind {
    /// A kernel.
    Kernel,
    /// A function, at its place in the caller.
    Function,
    /// A loop.
    Loop,
    /// A location.
    Location,
}

/// A part of a program, with its inner parts.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Part {
    /// Kind of the part.
    pub kind: PartKind,
    /// Name of the kernel, the function or the location.
    pub name: String,
    /// The location, or the head of the loop.
    pub location: Option<u16>,
    /// Counts including all inner parts.
    #[serde(flatten)]
    pub counts: Counts,
    /// Idle slots, here and elsewhere, whose cause is in this part. For a kernel, all of its idle slots.
    pub caused: u64,
    /// Time including all inner parts; `None` if the trace has no times.
    #[serde(flatten)]
    pub time: Option<Time>,
    /// Counts without inner loops and functions.
    pub own: Counts,
    /// Inner parts, in the order of location ids. Not in JSON.
    #[serde(skip)]
    pub parts: Vec<Part>,
}

impl Part {
    /// Calls `of` with each location inside, and the parts that contain it, outermost first.
    pub fn each_location<'a>(&'a self, around: &mut Vec<&'a Self>, of: &mut impl FnMut(u16, &[&'a Self])) {
        if let (PartKind::Location, Some(location)) = (self.kind, self.location) {
            return of(location, around);
        }
        around.push(self);
        self.parts.iter().for_each(|part| part.each_location(around, of));
        around.pop();
    }

    /// Returns the lowest location id inside, which orders parts as in the source.
    fn first(&self) -> u16 {
        let inside = self.parts.iter().map(Self::first).min();
        self.location.into_iter().chain(inside).min().unwrap_or(u16::MAX)
    }

    fn around(kind: PartKind, name: String, location: Option<u16>, mut parts: Vec<Self>) -> Self {
        parts.order_by_key(Self::first);
        let (mut counts, mut own, mut caused) = (Counts::default(), Counts::default(), 0_u64);
        let mut time: Option<Time> = None;
        for part in &parts {
            counts.add(&part.counts);
            if let Some(more) = &part.time {
                time.get_or_insert_default().add(more);
            }
            caused = caused.saturating_add(part.caused);
            if part.kind == PartKind::Location {
                own.add(&part.counts);
            }
        }
        Self { kind, name, location, counts, caused, time, own, parts }
    }
}

/// Sums the figures of each kernel, in the order of [`Analysis::kernels`].
pub fn roll_up(trace: &TraceFile, analysis: &Analysis) -> Vec<Part> {
    let locations = trace.metadata().locations.iter();
    let table: NameTable<'_> =
        locations.map(|info| (info.id, [info.name.as_str(), info.function.as_str()])).collect();
    let of = |kernel: &KernelFigures| {
        let mut part = of_kernel(kernel, &table);
        // Idle slots can be charged to the start of a warp, which is not a location.
        part.caused = kernel.causes.values().fold(0, |sum: u64, idle| sum.saturating_add(*idle));
        part
    };
    analysis.kernels.iter().map(of).collect()
}

type NameTable<'a> = BTreeMap<u16, [&'a str; 2]>;

fn of_kernel(kernel: &KernelFigures, table: &NameTable<'_>) -> Part {
    let flow = Flow::new(kernel, table);
    let nodes: Vec<usize> = (0..flow.ids.len()).collect();
    let parts = flow.parts(&nodes, &kernel.kernel, 0);
    Part::around(PartKind::Kernel, kernel.kernel.clone(), None, parts)
}

/// Control flow graph of a kernel. Nodes are indices into `ids`.
struct Flow<'a> {
    kernel: &'a KernelFigures,
    table: &'a NameTable<'a>,
    ids: Vec<u16>,
    next: Vec<Vec<usize>>,
    before: Vec<Vec<(Option<usize>, u64)>>,
}

impl<'a> Flow<'a> {
    fn new(kernel: &'a KernelFigures, table: &'a NameTable<'a>) -> Self {
        let ids: Vec<u16> = kernel.locations.keys().copied().collect();
        let number = |id: Option<u16>| ids.binary_search(&id?).ok();
        let (mut next, mut before) = (vec![Vec::new(); ids.len()], vec![Vec::new(); ids.len()]);
        for Edge { from, to, lanes, .. } in &kernel.edges {
            let Some(to) = number(*to) else { continue };
            before[to].push((number(*from), *lanes));
            if let Some(from) = number(*from) {
                next[from].push(to);
            }
        }
        Self { kernel, table, ids, next, before }
    }

    fn function(&self, node: usize, around: &'a str) -> &'a str {
        let found = self.table.get(&self.ids[node]).map(|[_, function]| *function);
        found.filter(|name| !name.is_empty()).unwrap_or(around)
    }

    fn name(&self, node: usize) -> String {
        self.table.get(&self.ids[node]).map_or("?", |[name, _]| *name).to_owned()
    }

    fn location(&self, node: usize) -> Part {
        let id = self.ids[node];
        let counts = self.kernel.locations.get(&id).copied().unwrap_or_default();
        let caused = self.kernel.causes.get(&id).copied().unwrap_or(0);
        // In a timed kernel, a location without time has zeros.
        let time = self.kernel.time.map(|_| self.kernel.times.get(&id).copied().unwrap_or_default());
        let (kind, name, parts) = (PartKind::Location, self.name(node), Vec::new());
        Part { kind, name, location: Some(id), counts, caused, time, own: counts, parts }
    }

    fn parts(&self, nodes: &[usize], function: &'a str, depth: usize) -> Vec<Part> {
        let (mut parts, mut called) = (Vec::new(), BTreeMap::<&str, Vec<Part>>::new());
        for set in self.rounds(nodes) {
            let is_loop = set.len() > 1 || self.next[set[0]].contains(&set[0]);
            let mut add = |own: &'a str, part: Part| {
                let parts = if own == function { &mut parts } else { called.entry(own).or_default() };
                parts.push(part);
            };
            if !is_loop || depth == MAX_DEPTH {
                set.iter().for_each(|&node| add(self.function(node, function), self.location(node)));
                continue;
            }
            let head = self.head(&set);
            let own = self.function(head, function);
            let inside: Vec<usize> = set.into_iter().filter(|node| *node != head).collect();
            let mut of_loop = self.parts(&inside, own, depth + 1);
            of_loop.push(self.location(head));
            add(own, Part::around(PartKind::Loop, self.name(head), Some(self.ids[head]), of_loop));
        }
        let called = called
            .into_iter()
            .map(|(name, parts)| Part::around(PartKind::Function, name.to_owned(), None, parts));
        parts.extend(called);
        parts
    }

    fn head(&self, set: &[usize]) -> usize {
        let inside: FxHashSet<usize> = set.iter().copied().collect();
        let is_outside = |from: &Option<usize>| from.is_none_or(|from| !inside.contains(&from));
        let lanes = |node: usize| {
            let from_outside = self.before[node].iter().filter(|(from, _)| is_outside(from));
            from_outside.fold(0_u64, |sum, (_, lanes)| sum.saturating_add(*lanes))
        };
        set.iter().copied().max_by_key(|&node| (lanes(node), std::cmp::Reverse(node))).unwrap_or(set[0])
    }

    /// Returns the strongly connected components (Tarjan, "Depth-First Search and Linear Graph Algorithms").
    fn rounds(&self, nodes: &[usize]) -> Vec<Vec<usize>> {
        const DONE: usize = usize::MAX;
        // For each node: 0 if not visited, otherwise the lowest number of a node that it leads back to.
        let mut earliest: FxHashMap<usize, usize> = nodes.iter().map(|&node| (node, 0)).collect();
        let (mut sets, mut open, mut seen) = (Vec::new(), Vec::new(), 0);
        for &start in nodes {
            if earliest[&start] != 0 {
                continue;
            }
            // A node, its number, and how many of its edges were followed.
            let mut way: Vec<(usize, usize, usize)> = Vec::new();
            let mut enter = Some(start);
            while enter.is_some() || !way.is_empty() {
                if let Some(node) = enter.take() {
                    seen += 1;
                    earliest.insert(node, seen);
                    open.push(node);
                    way.push((node, seen, 0));
                }
                let Some((node, number, followed)) = way.last_mut() else { break };
                let (node, number) = (*node, *number);
                if let Some(to) = self.next[node].get(*followed) {
                    *followed += 1;
                    match earliest.get(to).copied() {
                        Some(0) => enter = Some(*to),
                        Some(other) if other != DONE => {
                            let own = earliest[&node].min(other);
                            earliest.insert(node, own);
                        }
                        _ => {}
                    }
                    continue;
                }
                way.pop();
                let own = earliest[&node];
                if let Some(&(before, ..)) = way.last() {
                    let least = earliest[&before].min(own);
                    earliest.insert(before, least);
                }
                if own == number {
                    let from = open.iter().rposition(|&other| other == node).unwrap_or(0);
                    let set = open.split_off(from);
                    earliest.extend(set.iter().map(|&node| (node, DONE)));
                    sets.push(set);
                }
            }
        }
        sets
    }
}

#[cfg(test)]
#[path = "roll_up_tests.rs"]
mod tests;
