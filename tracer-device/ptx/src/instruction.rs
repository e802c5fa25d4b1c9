//! Instructions. Only their structure is parsed: any opcode is accepted.

use crate::span::Span;

/// An instruction: `@!%p1 opcode.modifiers operand, operand;`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instruction<'a> {
    /// The guard; `None` if all active lanes execute the instruction.
    pub guard: Option<Guard<'a>>,
    /// The opcode with its modifiers: `bra.uni`.
    pub opcode: &'a str,
    /// Span of the opcode.
    pub opcode_span: Span,
    /// The operands, separated by top-level commas.
    pub operands: Vec<Operand<'a>>,
}

/// The predicate of a guarded instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guard<'a> {
    /// Span from `@` to the predicate's name.
    pub span: Span,
    /// Whether the guard is negated: lanes with a false predicate execute the instruction.
    pub negated: bool,
    /// The predicate register's name.
    pub predicate: &'a str,
}

/// An operand: a register, a number, an address in brackets, a vector in braces or a list in parentheses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operand<'a> {
    /// Span of the operand, without blanks at its ends.
    pub span: Span,
    /// Text of the operand.
    pub text: &'a str,
}

impl<'a> Instruction<'a> {
    /// Returns the opcode's first part: `ld` of `ld.global.u32`.
    #[must_use]
    pub fn name(&self) -> &'a str {
        let end = self.opcode.bytes().position(|byte| byte == b'.').unwrap_or(self.opcode.len());
        self.opcode[..end].trim_end()
    }

    /// Returns the opcode's other parts without dots: `global` and `u32` of `ld.global.u32`.
    pub fn modifiers(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.opcode.split('.').skip(1).map(str::trim)
    }

    /// Returns true if the opcode has `modifier`, given without its dot.
    #[must_use]
    pub fn has_modifier(&self, modifier: &str) -> bool {
        self.modifiers().any(|part| part == modifier)
    }

    /// Returns true if the instruction is a call, direct or indirect.
    #[must_use]
    pub fn is_call(&self) -> bool {
        self.name() == "call"
    }

    /// Returns the name of the called function; `None` for indirect calls and other instructions.
    #[must_use]
    pub fn callee(&self) -> Option<&'a str> {
        self.called().filter(|(_, direct)| *direct).map(|(operand, _)| operand.text)
    }

    /// Returns true if the instruction calls through a register, with a list of targets or a prototype.
    #[must_use]
    pub fn is_indirect_call(&self) -> bool {
        self.called().is_some_and(|(_, direct)| !direct)
    }

    /// Returns the called operand of a call, and whether it is a function's name.
    fn called(&self) -> Option<(&Operand<'a>, bool)> {
        if !self.is_call() {
            return None;
        }
        let results = usize::from(self.operands.first().is_some_and(Operand::is_list));
        let (called, rest) = self.operands.get(results..)?.split_first()?;
        // An indirect call ends with its targets or prototype, a direct call with the name or with arguments.
        let direct = rest.last().is_none_or(Operand::is_list) && !called.text.starts_with('%');
        Some((called, direct))
    }
}

impl Operand<'_> {
    fn is_list(&self) -> bool {
        self.text.starts_with('(')
    }
}
