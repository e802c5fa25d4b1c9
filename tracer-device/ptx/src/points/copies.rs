//! Which asynchronous copies a wait is for.
//!
//! Copies of groups (`cp.async`, bulk copies out of shared memory) are followed along all ways through the
//! function, as hardware counts them: what a lane has issued since its last commit, and its committed groups,
//! the newest first. Where ways meet, a group is what it is on any of them. Bulk copies that complete at an
//! mbarrier are those of the waits at the same address.

use std::collections::{BTreeSet, HashMap};

use super::barriers::{KnownAddress, Registers};
use crate::{Body, Cfg, Instruction};

/// Groups that are told apart, the newest first; older ones are one.
const MAX_GROUPS: usize = 16;
/// Copies of a function that are followed; of one with more nothing is said.
const MAX_COPIES: usize = 512;
/// How often a block is looked at in the mean, until groups are the same on all ways; else nothing is said.
const MAX_VISITS: usize = 64;

/// The copies that a wait is for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Awaited {
    /// Their statements.
    pub(super) copies: BTreeSet<usize>,
    /// Whether it is for all of them, and for no others, whenever lanes come there.
    pub(super) is_certain: bool,
}

/// Copies that complete together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Group {
    copies: BTreeSet<usize>,
    /// Whether it may be less, or others.
    may_differ: bool,
}

/// What a lane has issued and not waited for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Issued {
    open: Group,
    /// The newest first.
    groups: Vec<Group>,
}

/// How copies are waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    /// `cp.async`.
    Async,
    /// Bulk copies in groups.
    Bulk,
}

/// What an instruction is to copies of a class.
enum Step {
    Issue,
    Commit,
    /// All groups but the newest `pending` are waited for, `None` if it is known at run time only; with what
    /// is not committed, if `all`.
    Wait {
        pending: Option<usize>,
        all: bool,
    },
}

/// The copies of a function.
pub(super) struct Copies<'b, 'a> {
    body: &'b Body<'a>,
    flow: &'b Cfg,
    registers: &'b Registers<'b, 'a>,
    /// Copies that complete at mbarriers.
    at_barriers: Vec<(usize, KnownAddress<'a>)>,
    /// By the statement of each wait for groups its copies.
    of_groups: HashMap<usize, Awaited>,
    /// Whether no one has issued copies before it begins.
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

    /// Returns the copies that the instruction of a statement waits for; `None` if it waits for no copies, or
    /// none is there.
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

    /// Follows the groups of a class from block to block, and notes what each wait is for.
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

    /// Follows an instruction. Returns the groups that are waited for.
    fn step(&self, class: Class, statement: usize, issued: &mut Issued) -> Vec<Group> {
        let Some(instruction) = self.body.statements[statement].instruction() else { return Vec::new() };
        if instruction.is_call() {
            // It may issue and wait.
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
                    // How many are left is known at run time only.
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

    /// What it is where another way leads to the same place.
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

/// Returns the operand with the mbarrier at which a copy completes, if it does at one.
fn completes_at<'a>(instruction: &Instruction<'a>) -> Option<&'a str> {
    let addresses =
        || instruction.operands.iter().map(|operand| operand.text).filter(|text| text.starts_with('['));
    if instruction.has_modifier("mbarrier::complete_tx::bytes") {
        addresses().nth(2)
    } else if instruction.has_modifier("mbarrier") {
        // `cp.async.mbarrier.arrive`: the copies before it.
        addresses().next()
    } else {
        None
    }
}
