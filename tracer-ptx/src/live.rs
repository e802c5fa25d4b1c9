//! How many registers a function needs at least: the most that are live at once.
//!
//! Liveness by the usual backward data flow over basic blocks (Aho, Lam, Sethi, Ullman: Compilers, section 9.2.5). PTX has as many
//! registers as a compiler likes, so this says what the assembler must find room for, before it has chosen an order of
//! instructions.

use std::collections::HashMap;

use crate::{Body, Cfg, Directive, Instruction, StatementKind};

/// Opcodes without a result: their first operand is read.
const WITHOUT_RESULT: [&str; 22] = [
    "st",
    "red",
    "bra",
    "brx",
    "ret",
    "exit",
    "trap",
    "bar",
    "barrier",
    "membar",
    "fence",
    "pmevent",
    "prefetch",
    "prefetchu",
    "nanosleep",
    "discard",
    "sust",
    "call",
    "brkpt",
    "cp",
    "stmatrix",
    "setmaxnreg",
];

/// Numbers the registers of a function, and knows their sizes.
struct Registers<'a> {
    /// Words of each declared register, or of each of a row `%r<12>`, by name.
    declared: HashMap<&'a str, u32>,
    numbers: HashMap<&'a str, usize>,
    words: Vec<u32>,
}

impl<'a> Registers<'a> {
    fn of(body: &Body<'a>) -> Self {
        let mut declared = HashMap::new();
        for statement in &body.statements {
            if let StatementKind::Directive(Directive::Registers(declaration)) = &statement.kind {
                let words = words(declaration.ty);
                declared.extend(declaration.names.iter().map(|name| (name.name, words)));
            }
        }
        Self { declared, numbers: HashMap::new(), words: Vec::new() }
    }

    /// The number of a register; `None` for special ones and names that are not declared.
    fn number(&mut self, name: &'a str) -> Option<usize> {
        if let Some(&number) = self.numbers.get(name) {
            return Some(number);
        }
        let row = name.trim_end_matches(|digit: char| digit.is_ascii_digit());
        let words = *self.declared.get(name).or_else(|| self.declared.get(row))?;
        let number = self.words.len();
        self.numbers.insert(name, number);
        self.words.push(words);
        Some(number)
    }

    /// The registers that a piece of text names.
    fn named(&mut self, text: &'a str) -> Vec<usize> {
        let is_name = |byte: char| byte.is_ascii_alphanumeric() || matches!(byte, '_' | '$' | '%');
        text.split(|byte| !is_name(byte))
            .filter(|word| !word.is_empty())
            .filter_map(|word| self.number(word))
            .collect()
    }
}

/// Words of 32 bits that a register of a type takes; predicates have registers of their own.
fn words(ty: &str) -> u32 {
    match ty.trim_start_matches('.').trim_start_matches(|letter: char| letter.is_ascii_alphabetic()) {
        "64" => 2,
        "128" => 4,
        "" => 0,
        _ => 1,
    }
}

/// What an instruction reads and writes.
#[derive(Default)]
struct Effect {
    reads: Vec<usize>,
    writes: Vec<usize>,
}

fn effect<'a>(instruction: &Instruction<'a>, registers: &mut Registers<'a>) -> Effect {
    let mut effect = Effect::default();
    let has_result = !WITHOUT_RESULT.contains(&instruction.name());
    for (index, operand) in instruction.operands.iter().enumerate() {
        let named = registers.named(operand.text);
        // What stands in brackets is an address.
        if index == 0 && has_result && !operand.text.starts_with('[') {
            effect.writes.extend(named);
        } else {
            effect.reads.extend(named);
        }
    }
    if let Some(guard) = instruction.guard {
        effect.reads.extend(registers.named(guard.predicate));
        // Where the predicate does not hold, the register keeps what it had.
        effect.reads.append(&mut effect.writes);
    }
    effect
}

/// The largest number of words of 32 bits that registers hold at once, predicates aside.
///
/// For estimates: what the assembler takes beyond that depends on the order of instructions that it chooses.
#[must_use]
pub fn live_words(body: &Body<'_>, flow: &Cfg) -> u32 {
    let mut registers = Registers::of(body);
    let effects: Vec<Vec<Effect>> = flow
        .blocks()
        .iter()
        .map(|block| {
            let instructions = body.statements[block.statements.clone()].iter();
            instructions.filter_map(|one| one.instruction()).map(|one| effect(one, &mut registers)).collect()
        })
        .collect();
    let count = registers.words.len();
    let mut at_entry = vec![vec![false; count]; effects.len()];
    let mut most = 0;
    let mut changed = true;
    while changed {
        changed = false;
        for block in (0..effects.len()).rev() {
            let mut live = vec![false; count];
            for edge in flow.successors(block) {
                for (live, from) in live.iter_mut().zip(&at_entry[edge.to]) {
                    *live |= from;
                }
            }
            for Effect { reads, writes } in effects[block].iter().rev() {
                writes.iter().for_each(|register| live[*register] = false);
                reads.iter().for_each(|register| live[*register] = true);
                let words: u32 = live
                    .iter()
                    .zip(&registers.words)
                    .filter(|(live, _)| **live)
                    .map(|(_, words)| words)
                    .sum();
                most = most.max(words);
            }
            if live != at_entry[block] {
                at_entry[block] = live;
                changed = true;
            }
        }
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Module;

    fn live(code: &str) -> u32 {
        let text = format!(
            ".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry k() {{\n.reg .pred %p<3>; .reg .b32 %r<9>, %x; .reg .b64 %rd<9>;\n{code}\n}}"
        );
        let module = Module::parse(&text).expect("PTX");
        let body = module.function("k").and_then(|kernel| kernel.body.as_ref()).expect("a body");
        live_words(body, &Cfg::new(body).expect("its flow"))
    }

    #[test]
    fn values_live_from_their_making_to_their_last_use() {
        assert_eq!(live("mov.u32 %r1, 1; mov.u32 %r2, 2; add.u32 %r3, %r1, %r2; ret;"), 2);
        assert_eq!(live("mov.u64 %rd1, 1; mov.u32 %r2, 2; st.global.u32 [%rd1], %r2; ret;"), 3);
        assert_eq!(live("mov.u32 %r1, 1; mov.u32 %r1, 2; ret;"), 0, "nobody reads them");
    }

    #[test]
    fn a_loop_keeps_what_its_next_round_reads() {
        let code = "mov.u32 %r1, 0; mov.u32 %r2, 7; mov.u64 %rd1, 0;\nL: add.u32 %r1, %r1, %r2;\n\
                    setp.lt.u32 %p1, %r1, 9; @%p1 bra L; st.global.u32 [%rd1], %r1; ret;";
        assert_eq!(live(code), 4);
    }

    #[test]
    fn a_guarded_write_keeps_the_old_value() {
        assert_eq!(
            live("mov.u32 %r1, 1; mov.u32 %r2, 2; @%p1 mov.u32 %r1, %r2; add.u32 %x, %r1, 1; ret;"),
            2
        );
    }
}
