//! Points of a function and positions of their markers.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::Range;

use warptrace_abi::marker::Marker;

use super::blocks::Blocks;
use super::choose::choose;
use super::counted::Counted;
use super::named::name_of;
use super::{PointKind, PointOptions, Points};
use crate::{Body, Cfg, Edits, Statement, Terminator};

#[derive(Clone, Debug)]
pub(super) struct Site {
    pub(super) kind: PointKind,
    pub(super) block: usize,
    /// The statements of its block, or of the branch or wait.
    pub(super) statements: Range<usize>,
    pub(super) parent: Option<usize>,
    pub(super) counted: bool,
}

impl Site {
    /// Returns the point's name in the source, or a wait's instruction, from the first of its statements.
    pub(super) fn name<'a>(&self, statement: &Statement<'a>) -> Option<Cow<'a, str>> {
        match self.kind {
            PointKind::Barrier | PointKind::Wait | PointKind::Waited => {
                let instruction = statement.instruction()?;
                let operands: Vec<&str> = instruction.operands.iter().map(|it| it.text).collect();
                Some(format!("{} {}", instruction.opcode, operands.join(", ")).trim_end().to_owned().into())
            }
            _ => name_of(statement).map(Cow::from),
        }
    }

    /// Returns the statements that decide how lanes diverge after the point: where the block computes the
    /// predicate of the conditional branch, return or exit at its end, and that instruction. `None` for other
    /// points and blocks.
    pub(super) fn branch(&self, body: &Body<'_>, flow: &Cfg) -> Option<[usize; 2]> {
        if !matches!(self.kind, PointKind::Entry | PointKind::Block | PointKind::LoopBody) {
            return None;
        }
        let block = flow.blocks().get(self.block)?;
        let diverges = match block.terminator {
            Terminator::Branch { guarded }
            | Terminator::Return { guarded }
            | Terminator::Exit { guarded }
            | Terminator::Trap { guarded } => guarded,
            Terminator::Indexed { .. } => true,
            _ => false,
        };
        let mut statements = block.statements.clone().filter(|_| diverges);
        let last = statements.rfind(|index| body.statements[*index].instruction().is_some())?;
        let guard = body.statements[last].instruction()?.guard;
        let computes = |index: &usize| {
            let first = body.statements[*index].instruction().and_then(|it| it.operands.first());
            // `setp` may also write the complement: `%p1|%p2`.
            first
                .zip(guard)
                .is_some_and(|(it, guard)| it.text.split('|').any(|it| it.trim() == guard.predicate))
        };
        Some([statements.rfind(computes).unwrap_or(last), last])
    }

    pub(super) fn offset(&self, body: &Body<'_>) -> usize {
        let mut statements = self.statements.clone().filter_map(|index| body.statements.get(index));
        let first = statements.clone().find(|statement| statement.instruction().is_some());
        first.or_else(|| statements.next()).map_or(body.close, |statement| statement.span.start)
    }
}

/// A marker of a site, given by the site's index.
#[derive(Clone, Copy, Debug)]
pub(super) enum SiteMarker {
    Leave(usize),
    Enter(usize),
    Tick(usize),
    Event(usize),
}

impl SiteMarker {
    pub(super) fn marker(self, id: impl Fn(usize) -> u16) -> Marker {
        match self {
            Self::Leave(site) => Marker::Leave(id(site)),
            Self::Enter(site) => Marker::Enter(id(site)),
            Self::Tick(site) => Marker::Tick(id(site), 1),
            Self::Event(site) => Marker::Event(id(site)),
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Plan {
    /// The sites. A site's index determines its id.
    pub(super) sites: Vec<Site>,
    /// Markers by offset; at one offset, in execution order.
    pub(super) markers: BTreeMap<usize, Vec<SiteMarker>>,
    /// Sites without a marker, by the site that implies them.
    pub(super) implied: Vec<(usize, Vec<usize>)>,
    /// For each block, the site at its start.
    pub(super) begins: Vec<Option<usize>>,
}

impl Plan {
    pub(super) fn new(body: &Body<'_>, flow: &Cfg, options: &PointOptions<'_>) -> Self {
        let points = options.points;
        let blocks = Blocks::new(body, flow);
        let candidates = choose(&blocks, points, options.waits);
        let mut plan = Self::default();
        let mut site_of = vec![None; flow.blocks().len()];
        for (index, candidate) in candidates.iter().enumerate() {
            if candidate.begins_block() {
                site_of[candidate.block] = Some(index);
            }
        }
        let interrupting: Vec<usize> =
            candidates.iter().filter(|it| it.interrupts()).map(|it| it.block).collect();
        let chains = match points {
            Points::Blocks if interrupting.is_empty() => blocks.chains(|block| site_of[block].is_some()),
            _ => blocks.chains(|_| false),
        };
        let is_interrupted = |header: usize| {
            let this = flow.loop_of(header);
            this.is_some() && interrupting.iter().any(|block| flow.loop_of(*block) == this)
        };
        for (index, candidate) in candidates.iter().enumerate() {
            let around = flow.loop_of(candidate.block).map(|inner| &flow.loops()[inner]);
            let around = match around {
                // A loop's header belongs to the enclosing loop.
                Some(own) if own.header == candidate.block && candidate.begins_block() => {
                    own.parent.map(|outer| &flow.loops()[outer])
                }
                around => around,
            };
            let parent = around.and_then(|around| site_of[around.header]);
            let counted = match candidate.kind {
                PointKind::LoopBody if !is_interrupted(candidate.block) => {
                    Counted::new(&blocks, candidate.block, points, &chains)
                }
                _ => None,
            };
            plan.sites.push(Site {
                kind: candidate.kind,
                block: candidate.block,
                statements: candidate.statements.clone(),
                parent,
                counted: counted.is_some(),
            });
            if candidate.begins_block() && chains.follows(candidate.block) {
                continue;
            }
            let mut put = |at: usize, marker| plan.markers.entry(at).or_default().push(marker);
            match counted {
                None => candidate.at.iter().for_each(|at| put(*at, SiteMarker::Event(index))),
                Some(counted) => {
                    counted.leaves.iter().for_each(|at| put(*at, SiteMarker::Leave(index)));
                    counted.enters.iter().for_each(|at| put(*at, SiteMarker::Enter(index)));
                    candidate.at.iter().for_each(|at| put(*at, SiteMarker::Tick(index)));
                }
            }
        }
        for markers in plan.markers.values_mut() {
            // Counted loops are recorded first, then the end of a wait.
            markers.sort_by_key(|marker| match marker {
                SiteMarker::Leave(_) => 0,
                SiteMarker::Event(site) if plan.sites[*site].kind == PointKind::Waited => 1,
                _ => 2,
            });
        }
        for (index, candidate) in candidates.iter().enumerate() {
            let chain = chains.behind(candidate.block).filter_map(|block| site_of[block]);
            let chain: Vec<usize> = if candidate.begins_block() { chain.collect() } else { Vec::new() };
            if !chain.is_empty() {
                plan.implied.push((index, chain));
            }
        }
        plan.begins = site_of;
        plan
    }

    pub(super) fn insert(&self, edits: &mut Edits, text: &str, id: impl Fn(usize) -> u16) {
        for (at, markers) in &self.markers {
            insert_lines(edits, text, *at, markers.iter().map(|marker| marker.marker(&id)));
        }
    }
}

/// Inserts comments at an offset of a text, each on a separate line.
pub(super) fn insert_lines(edits: &mut Edits, text: &str, at: usize, comments: impl Iterator<Item: Display>) {
    let before = text[..at].trim_end_matches([' ', '\t']);
    let mut lines = String::new();
    if before.ends_with('\n') {
        let indent = &text[before.len()..at];
        for comment in comments {
            let pad = if lines.is_empty() && !indent.is_empty() { "" } else { "\t" };
            lines.push_str(&format!("{pad}{comment}\n"));
        }
        lines.push_str(indent);
    } else {
        for comment in comments {
            lines.push_str(&format!("\n\t{comment}"));
        }
        if !text[at..].trim_start_matches([' ', '\t', '\r']).starts_with('\n') {
            lines.push_str("\n\t");
        }
    }
    edits.insert(at, lines);
}
