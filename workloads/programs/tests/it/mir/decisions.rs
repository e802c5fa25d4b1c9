//! Checks that each decision of a function has its automatic trace point.
//!
//! The rules refer to the graph of a function's basic blocks. The `first` events of a block are the events
//! that lanes may produce next from that block.
//!
//! 1. The `first` event of the function's start is its entry.
//! 2. Each edge out of a switch has exactly one `first` event. It marks a decision (a branch, an arm, the
//!    body or the end of a loop) and differs from the other edges' events. The event of a branch or an arm
//!    has no other predecessor: all paths back from it, through blocks without events, end at that switch. An
//!    edge to the condition of an `else if` is exempt, because the decision is made there.
//! 3. Switches for the operands of one `&&` or `||` in a condition count as one switch with two events.
//! 4. Each cycle has an event. Each target of a back edge has the body of a loop among its `first` events,
//!    and no other such target has the same body.

use std::collections::{BTreeMap, BTreeSet};

use warptrace_device::{LocationKind, SourceLocation};

use super::parse::{Block, Function, Span};

/// Information in addition to the graph.
pub(crate) struct Known<'a> {
    pub(crate) locations: &'a BTreeMap<u16, &'static SourceLocation>,
    /// Returns whether a function leaves events when it is called.
    pub(crate) is_traced: &'a dyn Fn(&str) -> bool,
    pub(crate) source: &'a dyn Fn(&str) -> String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Point(u16),
    /// A call of a traced function.
    Call,
    /// The end of the function.
    Return,
}

#[derive(Clone, Debug)]
pub(crate) struct Problem {
    pub(crate) what: String,
    pub(crate) span: Option<Span>,
}

struct Graph<'a> {
    blocks: &'a [Block],
    known: &'a Known<'a>,
    /// Blocks that end with an operand of `&&` or `||`.
    operands: BTreeSet<usize>,
    /// Blocks that end with the condition of an `else if`, or with its first operand.
    chained: BTreeSet<usize>,
    before: Vec<Vec<usize>>,
}

pub(crate) fn problems(function: &Function, known: &Known<'_>) -> Vec<Problem> {
    let blocks = &function.blocks;
    let mut before = vec![Vec::new(); blocks.len()];
    for (number, block) in blocks.iter().enumerate() {
        block.successors.iter().for_each(|&next| before[next].push(number));
    }
    let is_operand = |block: &Block| {
        block.is_switch
            && block.span.as_ref().is_some_and(|span| is_operand(span, &(known.source)(&span.file)))
    };
    let is_chained = |block: &Block| {
        block.is_switch
            && block.span.as_ref().is_some_and(|span| is_chained(span, &(known.source)(&span.file)))
    };
    let operands = (0..blocks.len()).filter(|&number| is_operand(&blocks[number])).collect();
    let chained = (0..blocks.len()).filter(|&number| is_chained(&blocks[number])).collect();
    let graph = Graph { blocks, known, operands, chained, before };
    let mut problems = Vec::new();
    let start = graph.first(0);
    if !matches!(start.iter().collect::<Vec<_>>()[..], [Event::Point(id)] if graph.kind(*id) == Some(LocationKind::Entry))
    {
        problems.push(Problem { what: format!("the function begins with {start:?}"), span: None });
    }
    for number in graph.reachable() {
        if blocks[number].is_switch {
            let what =
                if graph.operands.contains(&number) { graph.compound(number) } else { graph.switch(number) };
            problems.extend(what.map(|what| Problem { what, span: blocks[number].span.clone() }));
        }
    }
    let mut bodies = BTreeMap::new();
    for header in graph.headers() {
        let is_body = |event: &Event| matches!(event, Event::Point(id) if graph.kind(*id) == Some(LocationKind::LoopBody));
        let body = graph.first(header).into_iter().find(is_body);
        if body.is_none_or(|body| bodies.insert(body, header).is_some()) {
            let what = format!("a loop begins with {:?}", graph.first(header));
            problems.push(Problem { what, span: blocks[header].span.clone() });
        }
    }
    if let Some(number) = graph.silent_circle() {
        let span = blocks[number].span.clone();
        problems.push(Problem { what: "a loop has no event".to_owned(), span });
    }
    problems
}

/// Converts a line and column, which count from 1, to an offset in bytes.
fn offset(source: &str, (line, column): (usize, usize)) -> usize {
    let before: usize = source.split_inclusive('\n').take(line - 1).map(str::len).sum();
    before + column - 1
}

fn is_chained(span: &Span, source: &str) -> bool {
    let before =
        source[..offset(source, span.start)].trim_end_matches(|letter: char| " \n(!".contains(letter));
    before.strip_suffix("if").is_some_and(|before| before.trim_end().ends_with("else"))
}

fn is_operand(span: &Span, source: &str) -> bool {
    let before =
        source[..offset(source, span.start)].trim_end_matches(|letter: char| " \n(!".contains(letter));
    let after = source[offset(source, span.end)..].trim_start_matches(|letter: char| " \n)".contains(letter));
    before.ends_with("&&") || before.ends_with("||") || after.starts_with("&&") || after.starts_with("||")
}

impl Graph<'_> {
    fn kind(&self, id: u16) -> Option<LocationKind> {
        self.known.locations.get(&id).map(|location| location.kind)
    }

    fn event(&self, block: usize) -> Option<Event> {
        let block = &self.blocks[block];
        let is_call = || block.callee.as_deref().is_some_and(self.known.is_traced);
        let point = block.point.map(Event::Point);
        point.or_else(|| is_call().then_some(Event::Call)).or(block.is_return.then_some(Event::Return))
    }

    fn first(&self, from: usize) -> BTreeSet<Event> {
        let (mut found, mut seen, mut next) = (BTreeSet::new(), BTreeSet::new(), vec![from]);
        while let Some(number) = next.pop() {
            if !seen.insert(number) {
                continue;
            }
            match self.event(number) {
                Some(event) => {
                    found.insert(event);
                }
                None => next.extend(&self.blocks[number].successors),
            }
        }
        found
    }

    fn switches(&self, from: usize) -> Option<usize> {
        let mut number = from;
        for _ in 0..self.blocks.len() {
            let block = &self.blocks[number];
            match block.successors[..] {
                _ if self.event(number).is_some() => return None,
                _ if block.is_switch => return Some(number),
                [next] => number = next,
                _ => return None,
            }
        }
        None
    }

    fn reachable(&self) -> BTreeSet<usize> {
        let (mut seen, mut next) = (BTreeSet::new(), vec![0]);
        while let Some(number) = next.pop() {
            if seen.insert(number) {
                next.extend(&self.blocks[number].successors);
            }
        }
        seen
    }

    fn headers(&self) -> BTreeSet<usize> {
        let (mut found, mut seen, mut open) = (BTreeSet::new(), BTreeSet::from([0]), vec![(0, 0)]);
        while let Some((number, way)) = open.last_mut() {
            let Some(&next) = self.blocks[*number].successors.get(*way) else {
                open.pop();
                continue;
            };
            *way += 1;
            if open.iter().any(|(number, _)| *number == next) {
                found.insert(next);
            } else if seen.insert(next) {
                open.push((next, 0));
            }
        }
        found
    }

    /// Returns true for a block that is never executed: it has no successors, is not a return and has no
    /// trace point.
    fn is_dead(&self, block: usize) -> bool {
        let block = &self.blocks[block];
        block.successors.is_empty() && !block.is_return && block.point.is_none()
    }

    fn decided(&self, first: &BTreeSet<Event>) -> Option<u16> {
        let mut events = first.iter();
        match (events.next(), events.next()) {
            (Some(Event::Point(id)), None) if self.tells(*id) => Some(*id),
            _ => None,
        }
    }

    fn tells(&self, id: u16) -> bool {
        use LocationKind::{Arm, Else, LoopBody, LoopExit, Then};
        matches!(self.kind(id), Some(Then | Else | Arm | LoopBody | LoopExit))
    }

    /// Returns true if a switch decides whether the loop with the body or end `id` continues: the switch is
    /// the loop's condition, or is inside a counted loop.
    fn is_of_loop(&self, id: u16, switch: usize) -> bool {
        let locations = self.known.locations;
        let end =
            |location: &SourceLocation| (location.rejoin_line as usize, location.rejoin_column as usize);
        let own = |location: &&&SourceLocation| {
            location.kind == LocationKind::LoopBody && end(location) == end(locations[&id])
        };
        let (Some(body), Some(span)) = (locations.values().find(own), &self.blocks[switch].span) else {
            return false;
        };
        let open = (body.line as usize, body.column as usize);
        if span.start >= open {
            let ticks = |block: &Block| {
                block.point == Some(body.id)
                    && block.callee.as_deref().is_some_and(|callee| callee.ends_with("::tick"))
            };
            return span.start < end(body) && self.blocks.iter().any(ticks);
        }
        let source = (self.known.source)(&span.file);
        span.end <= open
            && !source[offset(&source, span.end)..offset(&source, open)].contains(['{', '}', ';'])
    }

    /// Returns true if an event belongs only to these switches.
    fn is_theirs(&self, id: u16, switches: &dyn Fn(usize) -> bool) -> bool {
        if matches!(self.kind(id), Some(LocationKind::LoopBody | LocationKind::LoopExit)) {
            return (0..self.blocks.len()).any(|number| {
                self.blocks[number].is_switch && switches(number) && self.is_of_loop(id, number)
            });
        }
        let at = |number: &usize| self.blocks[*number].point == Some(id);
        let (mut seen, mut next) = (BTreeSet::new(), Vec::<usize>::new());
        for number in (0..self.blocks.len()).filter(at) {
            if number == 0 {
                return false;
            }
            next.extend(&self.before[number]);
        }
        while let Some(number) = next.pop() {
            if !seen.insert(number) {
                continue;
            }
            if self.blocks[number].is_switch {
                if !switches(number) {
                    return false;
                }
            } else if number == 0 || self.event(number).is_some() {
                return false;
            } else {
                next.extend(&self.before[number]);
            }
        }
        true
    }

    fn switch(&self, number: usize) -> Option<String> {
        let mut seen = BTreeSet::new();
        for &way in self.blocks[number].successors.iter().filter(|way| !self.is_dead(**way)) {
            if self.switches(way).is_some_and(|next| self.chained.contains(&next)) {
                continue;
            }
            let first = self.first(way);
            let Some(id) = self.decided(&first) else {
                return Some(format!("a way goes on to {first:?}"));
            };
            if !seen.insert(id) {
                return Some(format!("two ways go on to location {id}"));
            }
            if !self.is_theirs(id, &|other| other == number) {
                return Some(format!("location {id} is also reached without this decision"));
            }
        }
        None
    }

    fn compound(&self, number: usize) -> Option<String> {
        let first = self.first(number);
        let ids: Vec<u16> = first
            .iter()
            .filter_map(|event| match event {
                Event::Point(id) if self.tells(*id) => Some(*id),
                _ => None,
            })
            .collect();
        if (ids.len(), first.len()) != (2, 2) {
            return Some(format!("the condition goes on to {first:?}"));
        }
        let is_theirs = |id: &u16| self.is_theirs(*id, &|other| self.operands.contains(&other));
        let other = ids.iter().find(|id| !is_theirs(id))?;
        Some(format!("location {other} is also reached without this condition"))
    }

    /// Returns a block that leads to a cycle without events, if one exists.
    fn silent_circle(&self) -> Option<usize> {
        let is_silent = |number: &usize| self.event(*number).is_none();
        let mut rest: BTreeSet<usize> = (0..self.blocks.len()).filter(is_silent).collect();
        // Repeatedly removes blocks without a silent successor.
        loop {
            let on_circle =
                |number: &&usize| self.blocks[**number].successors.iter().any(|next| rest.contains(next));
            let kept: BTreeSet<usize> = rest.iter().filter(on_circle).copied().collect();
            if kept.len() == rest.len() {
                return rest.first().copied();
            }
            rest = kept;
        }
    }
}
