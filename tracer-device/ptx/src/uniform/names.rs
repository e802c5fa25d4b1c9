//! What the operands of an instruction name, and which instructions compute of them alone.

use std::collections::{HashMap, HashSet};

use super::{Flaw, has_flaw};
use crate::registers::numbered;
use crate::{Body, Directive, Function, Instruction, Space, StatementKind};

/// Special registers that are the same for all lanes of a warp, as long as it runs.
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

/// Instructions whose first operand takes what they compute of the others, and of nothing else.
const COMPUTE: [&str; 54] = [
    "mov", "add", "sub", "mul", "mad", "mul24", "mad24", "sad", "div", "rem", "abs", "neg", "min", "max",
    "popc", "clz", "bfind", "fns", "brev", "bfe", "bfi", "bmsk", "szext", "dp4a", "dp2a", "and", "or", "xor",
    "not", "cnot", "lop3", "shf", "shl", "shr", "prmt", "selp", "slct", "set", "setp", "testp", "copysign",
    "fma", "rcp", "sqrt", "rsqrt", "sin", "cos", "lg2", "ex2", "tanh", "cvt", "cvta", "isspacep", "ld",
];

/// Instructions that write no register though their first operand is none in brackets.
const NO_RESULT: [&str; 4] = ["bra", "brx", "st", "red"];

/// Beginnings of the names of special registers that lanes, or instructions, have their own values of.
const DIVERGENT: [&str; 5] = ["%tid", "%lane", "%warpid", "%clock", "%globaltimer"];

/// Names of declared registers.
#[derive(Default)]
struct Registers<'a> {
    names: HashSet<&'a str>,
    /// Of `name<N>`, N.
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

/// The names of a function.
pub(super) struct Names<'a> {
    numbers: HashMap<&'a str, u32>,
    /// Registers that a scope within the body declares: a name may be two registers.
    scoped: Registers<'a>,
    /// Registers whose names do not tell that they are some.
    bare: Registers<'a>,
    /// A kernel's own parameters.
    params: HashSet<&'a str>,
    /// Parameters in registers, and variables of parameters that the body declares.
    unknown: HashSet<&'a str>,
}

/// What an instruction does to registers.
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

    /// The number of a register, which has one from its first use on.
    fn number(&mut self, name: &'a str) -> u32 {
        let next = self.numbers.len() as u32;
        *self.numbers.entry(name).or_insert(next)
    }

    /// The register of a guard.
    pub(super) fn guard(&mut self, predicate: &'a str) -> Option<u32> {
        (!self.scoped.has(predicate)).then(|| self.number(predicate))
    }

    /// Says in `effect` what an instruction does. Of a name that may be several registers nothing is known.
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

    /// Whether a name is no register, or a special one that is the same for all lanes.
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
            // Of parameters, only those of the kernel: the address tells.
            "ld" => is("const") || is("param") && self.is_own_param(instruction),
            "atom" => has_flaw(Flaw::Atomics),
            "shfl" => has_flaw(Flaw::Shuffles),
            // Carries are in a register that no operand names.
            _ if is("cc") || ["addc", "subc", "madc"].contains(&name) => false,
            _ => COMPUTE.contains(&name),
        }
    }

    fn is_own_param(&self, instruction: &Instruction<'a>) -> bool {
        let mut words = instruction.operands.get(1).into_iter().flat_map(|operand| words(operand.text));
        words.next().is_some_and(|word| self.params.contains(word) && !self.unknown.contains(word))
    }
}

/// The names in an operand; of `%ctaid.x` the part before the dot, and no numbers.
pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%' | '.');
    text.split(move |c| !is_word(c))
        .map(|word| word.split('.').next().unwrap_or_default())
        .filter(|word| *word != "_" && word.starts_with(|c: char| !c.is_ascii_digit()))
}
