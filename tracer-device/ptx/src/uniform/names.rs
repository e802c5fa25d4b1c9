//! Register operands of instructions, and the instructions whose results depend on their operands only.

use std::collections::{HashMap, HashSet};

use super::{Flaw, has_flaw};
use crate::registers::numbered;
use crate::{Body, Directive, Function, Instruction, Space, StatementKind};

/// Special registers with the same value in all lanes of a warp, constant over time.
const UNIFORM: [&str; 17] = [
    "%ntid",
    "%ctaid",
    "%nctaid",
    "%gridid",
    "%nsmid",
    "%nwarpid",
    "%clusterid",
    "%nclusterid",
    "%cluster_ctaid",
    "%cluster_nctaid",
    "%cluster_ctarank",
    "%cluster_nctarank",
    "%is_explicit_cluster",
    "%total_smem_size",
    "%aggr_smem_size",
    "%dynamic_smem_size",
    "%reserved_smem_offset_begin",
];

/// Instructions whose first operand is a result that depends on the other operands only.
const COMPUTE: [&str; 54] = [
    "mov", "add", "sub", "mul", "mad", "mul24", "mad24", "sad", "div", "rem", "abs", "neg", "min", "max",
    "popc", "clz", "bfind", "fns", "brev", "bfe", "bfi", "bmsk", "szext", "dp4a", "dp2a", "and", "or", "xor",
    "not", "cnot", "lop3", "shf", "shl", "shr", "prmt", "selp", "slct", "set", "setp", "testp", "copysign",
    "fma", "rcp", "sqrt", "rsqrt", "sin", "cos", "lg2", "ex2", "tanh", "cvt", "cvta", "isspacep", "ld",
];

/// Instructions that write no register although their first operand has no brackets.
const NO_RESULT: [&str; 4] = ["bra", "brx", "st", "red"];

/// Name prefixes of special registers whose values differ between lanes or between executions.
const DIVERGENT: [&str; 5] = ["%tid", "%lane", "%warpid", "%clock", "%globaltimer"];

#[derive(Default)]
struct Registers<'a> {
    names: HashSet<&'a str>,
    /// N of `name<N>`.
    ranges: HashMap<&'a str, u32>,
}

impl<'a> Registers<'a> {
    fn add(&mut self, name: &'a str, count: Option<u32>) {
        match count {
            None => {
                self.names.insert(name);
            }
            Some(count) => {
                let known = self.ranges.entry(name).or_default();
                *known = count.max(*known);
            }
        }
    }

    fn has(&self, name: &str) -> bool {
        let is_declared =
            |(name, number): (&str, u32)| self.ranges.get(name).is_some_and(|count| number < *count);
        self.names.contains(name) || !self.ranges.is_empty() && numbered(name).any(is_declared)
    }
}

pub(super) struct Names<'a> {
    numbers: HashMap<&'a str, u32>,
    /// Registers declared in a scope within the body. Their names may refer to several registers.
    scoped: Registers<'a>,
    /// Registers whose names do not begin with `%`.
    bare: Registers<'a>,
    params: HashSet<&'a str>,
    /// Parameters in registers, and `.param` variables that the body declares.
    unknown: HashSet<&'a str>,
}

#[derive(Default)]
pub(super) struct Effect {
    pub(super) results: Vec<u32>,
    pub(super) operands: Vec<u32>,
    /// Whether the results are uniform if the operands are.
    pub(super) computes: bool,
}

impl<'a> Names<'a> {
    pub(super) fn new(function: &Function<'a>, body: &Body<'a>) -> Self {
        let mut names = Self {
            numbers: HashMap::new(),
            scoped: Registers::default(),
            bare: Registers::default(),
            params: HashSet::new(),
            unknown: HashSet::new(),
        };
        for param in function.params.iter().chain(&function.returns) {
            let known = function.is_entry() && param.space == Space::Param;
            if known {
                names.params.insert(param.name)
            } else {
                names.unknown.insert(param.name)
            };
        }
        for statement in &body.statements {
            match &statement.kind {
                StatementKind::Directive(Directive::Registers(declaration)) => {
                    for declared in &declaration.names {
                        if statement.depth > 0 {
                            names.scoped.add(declared.name, declared.count);
                        }
                        if !declared.name.starts_with('%') {
                            names.bare.add(declared.name, declared.count);
                        }
                    }
                }
                StatementKind::Directive(Directive::Variable(declaration))
                    if declaration.space == Space::Param =>
                {
                    names.unknown.extend(declaration.names.iter().map(|declared| declared.name));
                }
                _ => {}
            }
        }
        names
    }

    /// Returns the number of a register, assigned at its first use.
    fn number(&mut self, name: &'a str) -> u32 {
        let next = self.numbers.len() as u32;
        *self.numbers.entry(name).or_insert(next)
    }

    /// Returns the register of a guard; `None` if the name may refer to several registers.
    pub(super) fn guard(&mut self, predicate: &'a str) -> Option<u32> {
        (!self.scoped.has(predicate)).then(|| self.number(predicate))
    }

    /// Stores an instruction's effect. Names that may refer to several registers count as not uniform.
    pub(super) fn effect(&mut self, instruction: &Instruction<'a>, effect: &mut Effect) {
        let name = instruction.name();
        effect.results.clear();
        effect.operands.clear();
        effect.computes = self.computes(instruction, name);
        let has_result = !NO_RESULT.contains(&name);
        for (index, operand) in instruction.operands.iter().enumerate() {
            let is_result = index == 0 && has_result && !operand.text.starts_with('[');
            for word in words(operand.text) {
                if is_result {
                    effect.results.push(self.number(word));
                } else if !self.is_uniform(word) {
                    effect.computes &= !self.is_divergent(word);
                    effect.operands.push(self.number(word));
                }
            }
        }
        if name == "ld" && has_flaw(Flaw::Loads) || name == "shfl" && has_flaw(Flaw::Shuffles) {
            effect.operands.clear();
        }
    }

    /// Returns true if a name is not a register, or a special register with the same value in all lanes.
    fn is_uniform(&self, word: &str) -> bool {
        if word.starts_with('%') {
            return UNIFORM.contains(&word) || has_flaw(Flaw::Lanes) && DIVERGENT.contains(&word);
        }
        !self.unknown.contains(word) && !self.bare.has(word)
    }

    fn is_divergent(&self, word: &str) -> bool {
        self.unknown.contains(word)
            || self.scoped.has(word)
            || DIVERGENT.iter().any(|special| word.starts_with(special))
    }

    fn computes(&self, instruction: &Instruction<'a>, name: &str) -> bool {
        let is = |modifier: &str| instruction.has_modifier(modifier);
        match name {
            "ld" if has_flaw(Flaw::Loads) => true,
            // Only the kernel's own parameters are uniform; the address identifies them.
            "ld" => is("const") || is("param") && self.is_own_param(instruction),
            "atom" => has_flaw(Flaw::Atomics),
            "shfl" => has_flaw(Flaw::Shuffles),
            // The carry flag is a register that no operand names.
            _ if is("cc") || ["addc", "subc", "madc"].contains(&name) => false,
            _ => COMPUTE.contains(&name),
        }
    }

    fn is_own_param(&self, instruction: &Instruction<'a>) -> bool {
        let mut words = instruction.operands.get(1).into_iter().flat_map(|operand| words(operand.text));
        words.next().is_some_and(|word| self.params.contains(word) && !self.unknown.contains(word))
    }
}

/// Returns the names in an operand, without numbers. Of `%ctaid.x`, returns the part before the dot.
pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%' | '.');
    text.split(move |c| !is_word(c))
        .map(|word| word.split('.').next().unwrap_or_default())
        .filter(|word| *word != "_" && word.starts_with(|c: char| !c.is_ascii_digit()))
}
