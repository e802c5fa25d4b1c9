//! Asynchronous copies of each wait. Copies in groups (`cp.async`, and bulk copies out of shared memory) are
//! followed along all paths of the function, as the hardware counts them: copies since the last commit, and
//! committed groups, the newest first. Where paths join, a group is the union of the groups on all paths.
//! Bulk copies that complete at an mbarrier belong to the waits at the same address.

use std::collections::{BTreeSet, HashMap};

use super::barriers::{KnownAddress, Registers};
use crate::{Body, Cfg, Instruction};

/// Maximum number of groups to distinguish, the newest first. Older groups are merged into the last one.
const MAX_GROUPS: usize = 16;
/// Maximum number of copies of a function. Functions with more are not analysed.
const MAX_COPIES: usize = 512;
/// Maximum mean number of visits of a block until the groups converge; functions that need more are skipped.
const MAX_VISITS: usize = 64;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Awaited {
    pub(super) copies: BTreeSet<usize>,
    /// Whether the wait is always for exactly these copies.
    pub(super) is_certain: bool,
}

/// Copies that complete together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Group {
    copies: BTreeSet<usize>,
    /// Whether the group may hold fewer or other copies at run time.
    may_differ: bool,
}

/// Copies that a lane has issued and not waited for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Issued {
    open: Group,
    /// Newest first.
    groups: Vec<Group>,
}

/// How a copy's completion is tracked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Async,
    Bulk,
}

enum Step {
    Issue,
    Commit,
    /// Waits for all groups but the newest `pending`, which is `None` if known only at run time. With `all`,
    /// also waits for copies that are not committed.
    Wait {
        pending: Option<usize>,
        all: bool,
    },
}

pub(super) struct Copies<'b, 'a> {
    body: &'b Body<'a>,
    flow: &'b Cfg,
    registers: &'b Registers<'b, 'a>,
    /// Statements of copies that complete at mbarriers, with the mbarriers' addresses.
    at_barriers: Vec<(usize, KnownAddress<'a>)>,
    /// Copies of each wait for groups, by the wait's statement.
    of_groups: HashMap<usize, Awaited>,
    /// Whether the function is a kernel. In other functions, callers may have copies in flight.
    is_entry: bool,
}

impl<'b, 'a> Copies<'b, 'a> {
    pub(super) fn new(
        body: &'b Body<'a>,
        flow: &'b Cfg,
        registers: &'b Registers<'b, 'a>,
        is_entry: bool,
    ) -> Self {
        let mut at_barriers = Vec::new();
        let mut count = 0;
        for (index, instruction) in body.instructions().filter(|(_, it)| it.name() == "cp") {
            let is_copy =
                !["commit_group", "wait_group", "wait_all"].iter().any(|it| instruction.has_modifier(it));
            count += usize::from(is_copy);
            if let Some(barrier) = completes_at(instruction) {
                at_barriers.push((index, registers.place(barrier)));
            }
        }
        let mut copies = Self { body, flow, registers, at_barriers, of_groups: HashMap::new(), is_entry };
        if (1..=MAX_COPIES).contains(&count) {
            copies.follow(Class::Async);
            copies.follow(Class::Bulk);
        }
        copies
    }

    /// Returns the copies that a statement waits for; `None` if there are none.
    pub(super) fn awaited(&self, statement: usize) -> Option<Awaited> {
        let instruction = self.body.statements.get(statement)?.instruction()?;
        let awaited = match instruction.name() {
            "mbarrier" => self.at_barrier(self.registers.place(instruction.operands.get(1)?.text)),
            "cp" => self.of_groups.get(&statement)?.clone(),
            _ => return None,
        };
        (!awaited.copies.is_empty()).then_some(awaited)
    }

    fn at_barrier(&self, place: KnownAddress<'_>) -> Awaited {
        let fit = || self.at_barriers.iter().filter(|(_, other)| place.may_be(*other));
        let is_certain = place.is_known() && fit().all(|(_, other)| other.is_known());
        Awaited { copies: fit().map(|(copy, _)| *copy).collect(), is_certain }
    }

    /// Follows the groups of a class through all blocks and stores the copies of each wait.
    fn follow(&mut self, class: Class) {
        let blocks = self.flow.blocks();
        let mut before: Vec<Option<Issued>> = vec![None; blocks.len()];
        let mut work: BTreeSet<usize> = BTreeSet::new();
        if let Some(first) = before.first_mut() {
            *first = Some(Issued::default());
            work.insert(0);
        }
        let mut visits = 0;
        while let Some(block) = work.pop_first() {
            visits += 1;
            let Some(mut issued) = before[block].clone().filter(|_| visits <= MAX_VISITS * blocks.len())
            else {
                return;
            };
            blocks[block].statements.clone().for_each(|statement| {
                self.step(class, statement, &mut issued);
            });
            for edge in self.flow.successors(block) {
                let next =
                    before[edge.to].as_ref().map_or_else(|| issued.clone(), |known| known.met(&issued));
                if before[edge.to].as_ref() != Some(&next) {
                    before[edge.to] = Some(next);
                    work.insert(edge.to);
                }
            }
        }
        for (block, issued) in before.into_iter().enumerate() {
            let Some(mut issued) = issued else { continue };
            for statement in blocks[block].statements.clone() {
                let over = self.step(class, statement, &mut issued);
                if !over.is_empty() {
                    let is_certain = self.is_entry && over.iter().all(|group| !group.may_differ);
                    let copies = over.into_iter().flat_map(|group| group.copies).collect();
                    self.of_groups.insert(statement, Awaited { copies, is_certain });
                }
            }
        }
    }

    /// Applies an instruction. Returns the groups that it waits for.
    fn step(&self, class: Class, statement: usize, issued: &mut Issued) -> Vec<Group> {
        let Some(instruction) = self.body.statements[statement].instruction() else { return Vec::new() };
        if instruction.is_call() {
            // The called function may issue copies and wait.
            issued.all().for_each(|group| group.may_differ = true);
        }
        match self.meaning(class, instruction) {
            None => Vec::new(),
            Some(Step::Issue) => {
                issued.open.copies.insert(statement);
                Vec::new()
            }
            Some(Step::Commit) => {
                issued.groups.insert(0, std::mem::take(&mut issued.open));
                if issued.groups.len() > MAX_GROUPS {
                    let oldest = issued.groups.pop().unwrap_or_default();
                    let last = &mut issued.groups[MAX_GROUPS - 1];
                    last.copies.extend(oldest.copies);
                    last.may_differ = true;
                }
                if instruction.guard.is_some() {
                    issued.all().for_each(|group| group.may_differ = true);
                }
                Vec::new()
            }
            Some(Step::Wait { pending, all }) => {
                let mut over = issued.groups.split_off(pending.unwrap_or(0).min(issued.groups.len()));
                if all {
                    over.push(std::mem::take(&mut issued.open));
                }
                if pending.is_none() || instruction.guard.is_some() {
                    // The number of remaining groups is known only at run time.
                    over.iter_mut().for_each(|group| group.may_differ = true);
                    issued.groups.extend(over.iter().cloned());
                }
                over
            }
        }
    }

    fn meaning(&self, class: Class, instruction: &Instruction<'a>) -> Option<Step> {
        let has = |modifier| instruction.has_modifier(modifier);
        let own = if has("bulk") { Class::Bulk } else { Class::Async };
        if instruction.name() != "cp" || own != class || has("prefetch") {
            return None;
        }
        Some(if has("commit_group") {
            Step::Commit
        } else if has("wait_all") {
            Step::Wait { pending: Some(0), all: true }
        } else if has("wait_group") {
            let pending =
                instruction.operands.first().and_then(|operand| self.registers.number(operand.text));
            Step::Wait { pending: pending.and_then(|pending| usize::try_from(pending).ok()), all: false }
        } else if completes_at(instruction).is_none() {
            Step::Issue
        } else {
            return None;
        })
    }
}

impl Issued {
    fn all(&mut self) -> impl Iterator<Item = &mut Group> {
        std::iter::once(&mut self.open).chain(&mut self.groups)
    }

    fn met(&self, other: &Self) -> Self {
        let none = Group::default();
        let length = self.groups.len().max(other.groups.len());
        let is_uneven = self.groups.len() != other.groups.len();
        let group = |at: usize| {
            let [one, two] = [self, other].map(|issued| issued.groups.get(at).unwrap_or(&none));
            let mut met = one.met(two);
            met.may_differ |= is_uneven;
            met
        };
        Self { open: self.open.met(&other.open), groups: (0..length).map(group).collect() }
    }
}

impl Group {
    fn met(&self, other: &Self) -> Self {
        let may_differ = self.may_differ || other.may_differ || self.copies != other.copies;
        Self { copies: self.copies.union(&other.copies).copied().collect(), may_differ }
    }
}

/// Returns the operand of the mbarrier at which a copy completes, if any.
fn completes_at<'a>(instruction: &Instruction<'a>) -> Option<&'a str> {
    let addresses =
        || instruction.operands.iter().map(|operand| operand.text).filter(|text| text.starts_with('['));
    if instruction.has_modifier("mbarrier::complete_tx::bytes") {
        addresses().nth(2)
    } else if instruction.has_modifier("mbarrier") {
        // `cp.async.mbarrier.arrive` covers the copies before it.
        addresses().next()
    } else {
        None
    }
}
