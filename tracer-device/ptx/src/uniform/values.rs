//! The values of registers, each with what it is made of.

use std::collections::HashMap;

use super::names::Names;
use super::parting::{Graph, Region};
use super::{Flaw, Steps, has_flaw};
use crate::{Body, Cfg, Function};

/// A value, by its index.
type Value = usize;

/// The values of a function's registers: what an instruction writes, and what a register holds at the start
/// of a block.
pub(super) struct Values {
    divergent: Vec<bool>,
    /// Of each value, those that are made of it.
    users: Vec<Vec<Value>>,
    /// Of each value, the blocks whose last branch it decides.
    decides: HashMap<Value, Vec<usize>>,
    /// Of each block, the values of registers at its start, where they are known by one.
    at_start: Vec<Vec<(Value, u32)>>,
    /// Of each register, the blocks that write it.
    writers: Vec<Vec<usize>>,
    work: Vec<Value>,
    /// Branches found to be divergent that have not been handed out.
    branches: Vec<usize>,
    handed_out: Vec<bool>,
}

/// Values while they are found.
struct Builder<'g> {
    graph: &'g Graph,
    values: Values,
    /// Values at the start of blocks.
    starts: HashMap<(usize, u32), Value>,
    /// Of each block, the values that it leaves in the registers that it writes.
    last: Vec<HashMap<u32, Value>>,
    /// Values at the start of a block, of which it is not known yet what they are made of.
    open: Vec<(Value, usize, u32)>,
}

impl Values {
    pub(super) fn of(
        function: &Function<'_>,
        body: &Body<'_>,
        flow: &Cfg,
        graph: &Graph,
        steps: &mut Steps,
    ) -> Option<Self> {
        let blocks = flow.blocks().len();
        let values = Self {
            divergent: Vec::new(),
            users: Vec::new(),
            decides: HashMap::new(),
            at_start: vec![Vec::new(); blocks],
            writers: Vec::new(),
            work: Vec::new(),
            branches: Vec::new(),
            handed_out: vec![false; blocks],
        };
        let mut names = Names::of(function, body);
        let mut builder = Builder {
            graph,
            values,
            starts: HashMap::new(),
            last: vec![HashMap::new(); blocks],
            open: Vec::new(),
        };
        for block in &graph.order {
            builder.block(&mut names, body, flow, *block);
        }
        builder.values.writers.resize(names.count(), Vec::new());
        for (block, last) in builder.last.iter().enumerate() {
            last.keys().for_each(|register| builder.values.writers[*register as usize].push(block));
        }
        builder.connect(steps)?;
        Some(builder.values)
    }

    fn add(&mut self) -> Value {
        self.divergent.push(false);
        self.users.push(Vec::new());
        self.users.len() - 1
    }

    fn diverges(&mut self, value: Value) {
        if !std::mem::replace(&mut self.divergent[value], true) {
            self.work.push(value);
        }
    }

    fn branch(&mut self, block: usize) {
        if !std::mem::replace(&mut self.handed_out[block], true) {
            self.branches.push(block);
        }
    }

    /// Returns a block at whose end lanes may part, each once. Outer `None`: too many steps.
    pub(super) fn next_divergent(&mut self, steps: &mut Steps) -> Option<Option<usize>> {
        loop {
            if let Some(branch) = self.branches.pop() {
                return Some(Some(branch));
            }
            let Some(value) = self.work.pop() else { return Some(None) };
            for block in self.decides.remove(&value).unwrap_or_default() {
                self.branch(block);
            }
            let users = std::mem::take(&mut self.users[value]);
            steps.take(1 + users.len())?;
            users.into_iter().for_each(|user| self.diverges(user));
        }
    }

    /// Lanes that were parted meet at the start of a block: registers that were written meanwhile diverge.
    pub(super) fn meet(&mut self, block: usize, region: &Region) {
        if has_flaw(Flaw::Joins) {
            return;
        }
        for (value, register) in self.at_start[block].clone() {
            if self.writers[register as usize].iter().any(|writer| region.contains(*writer)) {
                self.diverges(value);
            }
        }
    }

    /// Lanes come out of a loop, to a block, from different iterations: registers that it writes diverge.
    pub(super) fn leave(&mut self, flow: &Cfg, index: usize, block: usize) {
        if has_flaw(Flaw::Iterations) {
            return;
        }
        for (value, register) in self.at_start[block].clone() {
            if self.writers[register as usize].iter().any(|writer| flow.loop_contains(index, *writer)) {
                self.diverges(value);
            }
        }
    }
}

impl Builder<'_> {
    /// Returns the value of a register at the start of a block.
    fn start(&mut self, block: usize, register: u32) -> Value {
        if let Some(value) = self.starts.get(&(block, register)) {
            return *value;
        }
        let value = self.values.add();
        self.starts.insert((block, register), value);
        self.values.at_start[block].push((value, register));
        self.open.push((value, block, register));
        value
    }

    /// Adds what the instructions of a block write, and what decides its end.
    fn block<'a>(&mut self, names: &mut Names<'a>, body: &Body<'a>, flow: &Cfg, block: usize) {
        let statements = &body.statements[flow.blocks()[block].statements.clone()];
        let mut now: HashMap<u32, Value> = HashMap::new();
        // What the last instruction decides by: `None` for what is not known.
        let mut decided_by = Vec::new();
        for instruction in statements.iter().filter_map(|statement| statement.instruction()) {
            let effect = names.effect(instruction);
            let guard = instruction.guard.map(|guard| names.guard(guard.predicate));
            let read = |builder: &mut Self, register: u32| {
                now.get(&register).copied().unwrap_or_else(|| builder.start(block, register))
            };
            decided_by.clear();
            if instruction.name() == "brx" {
                decided_by.extend(effect.operands.iter().map(|register| Some(read(self, *register))));
            }
            decided_by.extend(guard.map(|guard| guard.map(|register| read(self, register))));
            let mut operands: Vec<Value> =
                effect.operands.iter().map(|register| read(self, *register)).collect();
            let mut computes = effect.computes;
            if !has_flaw(Flaw::Guards)
                && let Some(guard) = guard
            {
                match guard {
                    Some(register) => operands.push(read(self, register)),
                    None => computes = false,
                }
                // Lanes whose guard does not hold keep what they had.
                operands.extend(effect.results.iter().map(|register| read(self, *register)));
            }
            let written: Vec<Value> = effect
                .results
                .iter()
                .map(|_| {
                    let value = self.values.add();
                    if computes {
                        operands.iter().for_each(|operand| self.values.users[*operand].push(value));
                    } else {
                        self.values.diverges(value);
                    }
                    value
                })
                .collect();
            now.extend(effect.results.iter().copied().zip(written));
        }
        if self.graph.is_choice(block) {
            for value in decided_by {
                match value {
                    Some(value) => self.values.decides.entry(value).or_default().push(block),
                    None => self.values.branch(block),
                }
            }
        }
        self.last[block] = now;
    }

    /// Finds what the values at the start of blocks are made of.
    fn connect(&mut self, steps: &mut Steps) -> Option<()> {
        while let Some((value, block, register)) = self.open.pop() {
            let graph = self.graph;
            steps.take(1 + graph.predecessors[block].len())?;
            if block == 0 {
                // A register that is read before it is written.
                self.values.diverges(value);
            }
            for from in &graph.predecessors[block] {
                let before = match self.last[*from].get(&register) {
                    Some(value) => *value,
                    None => self.start(*from, register),
                };
                self.values.users[before].push(value);
            }
        }
        Some(())
    }
}
