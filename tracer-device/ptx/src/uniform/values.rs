//! Values of registers and their dependences.

use super::divergence::{Graph, Region};
use super::names::{Effect, Names};
use super::{Flaw, Steps, has_flaw};
use crate::{Body, Cfg, Function};

type Value = u32;

const NONE: Value = Value::MAX;

/// The values of a function's registers: each write, and the content of each register at a block's start.
pub(super) struct Values {
    divergent: Vec<bool>,
    /// For each value, the values that depend on it.
    users: Lists,
    /// For each value, the blocks whose last branch depends on it.
    decides: Lists,
    /// For each block, the values of registers at its start, with their registers.
    at_start: Vec<Vec<(Value, u32)>>,
    /// For each register, the blocks that write it, each with the last value written.
    writers: Vec<Vec<(usize, Value)>>,
    work: Vec<Value>,
    /// Divergent branches that have not been returned yet.
    branches: Vec<usize>,
    handed_out: Vec<bool>,
}

/// A list of numbers for each value. Stored as linked cells: a function has millions of values, most of them
/// with at most one number.
#[derive(Default)]
struct Lists {
    /// For each value, its first cell or [`NONE`].
    first: Vec<u32>,
    /// A number and the index of the next cell.
    cells: Vec<(u32, u32)>,
}

impl Lists {
    fn push(&mut self, value: Value, number: u32) {
        let first = &mut self.first[value as usize];
        self.cells.push((number, *first));
        *first = self.cells.len() as u32 - 1;
    }

    fn pop(&mut self, value: Value) -> Option<u32> {
        let first = &mut self.first[value as usize];
        let (number, next) = *self.cells.get(*first as usize)?;
        *first = next;
        Some(number)
    }
}

struct Builder<'g> {
    graph: &'g Graph,
    values: Values,
    /// For each register, the values at block starts whose operands are still to be found.
    open: Vec<Vec<(usize, Value)>>,
    /// For each register, its value in the current block, and the turn in which it was set.
    now: Vec<(usize, Value)>,
    written: Vec<u32>,
    turn: usize,
}

impl Values {
    pub(super) fn new(
        function: &Function<'_>,
        body: &Body<'_>,
        flow: &Cfg,
        graph: &Graph,
        steps: &mut Steps,
    ) -> Option<Self> {
        let blocks = flow.blocks().len();
        let values = Self {
            divergent: Vec::new(),
            users: Lists::default(),
            decides: Lists::default(),
            at_start: vec![Vec::new(); blocks],
            writers: Vec::new(),
            work: Vec::new(),
            branches: Vec::new(),
            handed_out: vec![false; blocks],
        };
        let mut names = Names::new(function, body);
        let mut builder =
            Builder { graph, values, open: Vec::new(), now: Vec::new(), written: Vec::new(), turn: 0 };
        for block in &graph.order {
            builder.block(&mut names, body, flow, *block);
        }
        builder.connect(blocks, steps)?;
        Some(builder.values)
    }

    fn add(&mut self) -> Value {
        self.divergent.push(false);
        self.users.first.push(NONE);
        self.decides.first.push(NONE);
        self.divergent.len() as Value - 1
    }

    fn diverges(&mut self, value: Value) {
        if !std::mem::replace(&mut self.divergent[value as usize], true) {
            self.work.push(value);
        }
    }

    fn branch(&mut self, block: usize) {
        if !std::mem::replace(&mut self.handed_out[block], true) {
            self.branches.push(block);
        }
    }

    /// Returns a block with a divergent branch, each block once. The outer `None` means: no steps are left.
    pub(super) fn next_divergent(&mut self, steps: &mut Steps) -> Option<Option<usize>> {
        loop {
            if let Some(branch) = self.branches.pop() {
                return Some(Some(branch));
            }
            let Some(value) = self.work.pop() else { return Some(None) };
            while let Some(block) = self.decides.pop(value) {
                self.branch(block as usize);
            }
            steps.take(1)?;
            while let Some(user) = self.users.pop(value) {
                steps.take(1)?;
                self.diverges(user);
            }
        }
    }

    /// Handles the reconvergence of lanes at the start of a block: registers written in the region diverge.
    pub(super) fn meet(&mut self, block: usize, region: &Region) {
        if !has_flaw(Flaw::Joins) {
            self.written_in(block, |writer| region.contains(writer));
        }
    }

    /// Handles an exit of a loop that lanes leave in different iterations: registers it writes diverge.
    pub(super) fn leave(&mut self, flow: &Cfg, index: usize, block: usize) {
        if !has_flaw(Flaw::Iterations) {
            self.written_in(block, |writer| flow.loop_contains(index, writer));
        }
    }

    /// Marks registers at the start of a block as divergent if a block selected by `is_meant` writes them.
    fn written_in(&mut self, block: usize, is_meant: impl Fn(usize) -> bool) {
        let at_start = std::mem::take(&mut self.at_start[block]);
        for (value, register) in &at_start {
            // Skips the search for values that already diverge.
            if !self.divergent[*value as usize]
                && self.writers[*register as usize].iter().any(|(writer, _)| is_meant(*writer))
            {
                self.diverges(*value);
            }
        }
        self.at_start[block] = at_start;
    }
}

impl Builder<'_> {
    fn start(&mut self, block: usize, register: u32) -> Value {
        let value = self.values.add();
        self.values.at_start[block].push((value, register));
        value
    }

    fn read(&mut self, block: usize, register: u32) -> Value {
        self.known(register);
        match self.now[register as usize] {
            (turn, value) if turn == self.turn => value,
            _ => {
                let value = self.start(block, register);
                self.open[register as usize].push((block, value));
                self.now[register as usize] = (self.turn, value);
                value
            }
        }
    }

    fn known(&mut self, register: u32) {
        let count = register as usize + 1;
        if self.now.len() < count {
            self.now.resize(count, (0, NONE));
            self.open.resize(count, Vec::new());
            self.values.writers.resize(count, Vec::new());
        }
    }

    /// Adds the values that a block's instructions write, and the values that its last branch depends on.
    fn block<'a>(&mut self, names: &mut Names<'a>, body: &Body<'a>, flow: &Cfg, block: usize) {
        let statements = &body.statements[flow.blocks()[block].statements.clone()];
        self.turn += 1;
        // Values that the last instruction depends on; `None` is an unknown value.
        let mut decided_by = Vec::new();
        let (mut effect, mut operands) = (Effect::default(), Vec::new());
        for instruction in statements.iter().filter_map(|statement| statement.instruction()) {
            names.effect(instruction, &mut effect);
            let guard = instruction.guard.map(|guard| names.guard(guard.predicate));
            operands.clear();
            for register in &effect.operands {
                operands.push(self.read(block, *register));
            }
            decided_by.clear();
            if instruction.name() == "brx" {
                decided_by.extend(operands.iter().copied().map(Some));
            }
            decided_by.extend(guard.map(|guard| guard.map(|register| self.read(block, register))));
            let mut computes = effect.computes;
            if !has_flaw(Flaw::Guards)
                && let Some(guard) = guard
            {
                match guard {
                    Some(register) => operands.push(self.read(block, register)),
                    None => computes = false,
                }
                // Lanes with a false guard keep their old values.
                operands.extend(effect.results.iter().map(|register| self.read(block, *register)));
            }
            for register in &effect.results {
                let value = self.values.add();
                if computes {
                    operands.iter().for_each(|operand| self.values.users.push(*operand, value));
                } else {
                    self.values.diverges(value);
                }
                self.known(*register);
                self.now[*register as usize] = (self.turn, value);
                self.written.push(*register);
            }
        }
        if self.graph.is_choice(block) {
            for value in decided_by {
                match value {
                    Some(value) => self.values.decides.push(value, block as u32),
                    None => self.values.branch(block),
                }
            }
        }
        for register in self.written.drain(..) {
            let writers = &mut self.values.writers[register as usize];
            if writers.last().is_none_or(|(last, _)| *last != block) {
                writers.push((block, self.now[register as usize].1));
            }
        }
    }

    /// Connects the values at block starts to the values at the predecessors' ends, register by register.
    fn connect(&mut self, blocks: usize, steps: &mut Steps) -> Option<()> {
        // For each block, the register's value at its start and at its end.
        let (mut starts, mut ends) = (vec![NONE; blocks], vec![NONE; blocks]);
        let mut started = Vec::new();
        for register in 0..self.open.len() {
            let mut open = std::mem::take(&mut self.open[register]);
            if open.is_empty() {
                continue;
            }
            for (block, value) in &self.values.writers[register] {
                ends[*block] = *value;
            }
            for (block, value) in &open {
                starts[*block] = *value;
                started.push(*block);
            }
            while let Some((block, value)) = open.pop() {
                let graph = self.graph;
                steps.take(1 + graph.predecessors[block].len())?;
                if block == 0 {
                    // The register is read before it is written.
                    self.values.diverges(value);
                }
                for from in &graph.predecessors[block] {
                    let mut before = ends[*from];
                    if before == NONE {
                        before = starts[*from];
                    }
                    if before == NONE {
                        before = self.start(*from, register as u32);
                        starts[*from] = before;
                        started.push(*from);
                        open.push((*from, before));
                    }
                    self.values.users.push(before, value);
                }
            }
            started.drain(..).for_each(|block| starts[block] = NONE);
            self.values.writers[register].iter().for_each(|(block, _)| ends[*block] = NONE);
        }
        Some(())
    }
}
