//! The values of registers, each with what it is made of.

use super::names::{Effect, Names};
use super::parting::{Graph, Region};
use super::{Flaw, Steps, has_flaw};
use crate::{Body, Cfg, Function};

/// A value, by its index.
type Value = u32;

/// No value.
const NONE: Value = Value::MAX;

/// The values of a function's registers: what an instruction writes, and what a register holds at the start
/// of a block.
pub(super) struct Values {
    divergent: Vec<bool>,
    /// Of each value, those that are made of it.
    users: Lists,
    /// Of each value, the blocks whose last branch it decides.
    decides: Lists,
    /// Of each block, the values of registers at its start, where they are known by one.
    at_start: Vec<Vec<(Value, u32)>>,
    /// Of each register, the blocks that write it, each with the value that it leaves there.
    writers: Vec<Vec<(usize, Value)>>,
    work: Vec<Value>,
    /// Branches found to be divergent that have not been handed out.
    branches: Vec<usize>,
    handed_out: Vec<bool>,
}

/// A list of numbers for each value. A function has millions, most of them with one number or none.
#[derive(Default)]
struct Lists {
    /// Of each value, its first cell, or [`NONE`].
    first: Vec<u32>,
    /// A number, and the next cell.
    cells: Vec<(u32, u32)>,
}

impl Lists {
    fn push(&mut self, value: Value, number: u32) {
        let first = &mut self.first[value as usize];
        self.cells.push((number, *first));
        *first = self.cells.len() as u32 - 1;
    }

    /// Takes one number out of the list of a value.
    fn pop(&mut self, value: Value) -> Option<u32> {
        let first = &mut self.first[value as usize];
        let (number, next) = *self.cells.get(*first as usize)?;
        *first = next;
        Some(number)
    }
}

/// Values while they are found.
struct Builder<'g> {
    graph: &'g Graph,
    values: Values,
    /// Of each register, the values at the start of blocks of which it is not known yet what they are made
    /// of.
    open: Vec<Vec<(usize, Value)>>,
    /// Of each register, what it holds in the block that is read, and the number of that block's turn.
    now: Vec<(usize, Value)>,
    /// The registers that the block writes.
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

    /// Returns a block at whose end lanes may part, each once. Outer `None`: too many steps.
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

    /// Lanes that were parted meet at the start of a block: registers that were written meanwhile diverge.
    pub(super) fn meet(&mut self, block: usize, region: &Region) {
        if !has_flaw(Flaw::Joins) {
            self.written_in(block, |writer| region.contains(writer));
        }
    }

    /// Lanes come out of a loop, to a block, from different iterations: registers that it writes diverge.
    pub(super) fn leave(&mut self, flow: &Cfg, index: usize, block: usize) {
        if !has_flaw(Flaw::Iterations) {
            self.written_in(block, |writer| flow.loop_contains(index, writer));
        }
    }

    /// Registers at the start of a block diverge if a block that `is_meant` writes them.
    fn written_in(&mut self, block: usize, is_meant: impl Fn(usize) -> bool) {
        let at_start = std::mem::take(&mut self.at_start[block]);
        for (value, register) in &at_start {
            // What diverges already needs no reason more.
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
    /// Adds the value of a register at the start of a block.
    fn start(&mut self, block: usize, register: u32) -> Value {
        let value = self.values.add();
        self.values.at_start[block].push((value, register));
        value
    }

    /// Returns what a register holds in the block that is read.
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

    /// Makes room for a register.
    fn known(&mut self, register: u32) {
        let count = register as usize + 1;
        if self.now.len() < count {
            self.now.resize(count, (0, NONE));
            self.open.resize(count, Vec::new());
            self.values.writers.resize(count, Vec::new());
        }
    }

    /// Adds what the instructions of a block write, and what decides its end.
    fn block<'a>(&mut self, names: &mut Names<'a>, body: &Body<'a>, flow: &Cfg, block: usize) {
        let statements = &body.statements[flow.blocks()[block].statements.clone()];
        self.turn += 1;
        // What the last instruction decides by: `None` for what is not known.
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
                // Lanes whose guard does not hold keep what they had.
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

    /// Finds what the values at the start of blocks are made of, register by register.
    fn connect(&mut self, blocks: usize, steps: &mut Steps) -> Option<()> {
        // Of each block, what the register holds at its start and at its end.
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
                    // A register that is read before it is written.
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
