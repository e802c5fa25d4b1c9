//! An instruction, known by its structure only: any opcode passes.

use crate::span::Span;

/// `@!%p1 opcode.modifiers operand, operand;`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instruction<'a> {
    /// The guard; `None` where every active lane executes the instruction.
    pub guard: Option<Guard<'a>>,
    /// The opcode with its modifiers: `bra.uni`.
    pub opcode: &'a str,
    /// The opcode's text.
    pub opcode_span: Span,
    /// The operands: what top-level commas separate.
    pub operands: Vec<Operand<'a>>,
}

/// The predicate of a guarded instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guard<'a> {
    /// The text from `@` to the predicate's name.
    pub span: Span,
    /// Whether the lanes whose predicate is false execute the instruction.
    pub negated: bool,
    /// The predicate register's name.
    pub predicate: &'a str,
}

/// An operand: a register, a number, an address in brackets, a vector in braces, a list in parentheses, ...
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operand<'a> {
    /// The operand's text, without blanks at its ends.
    pub span: Span,
    /// The same as a string.
    pub text: &'a str,
}

impl<'a> Instruction<'a> {
    /// Returns the opcode's first part: `ld` of `ld.global.u32`.
    #[must_use]
    pub fn name(&self) -> &'a str {
        let end = self.opcode.bytes().position(|byte| byte == b'.').unwrap_or(self.opcode.len());
        self.opcode[..end].trim_end()
    }

    /// Returns the opcode's other parts, without dots: `global` and `u32` of `ld.global.u32`.
    pub fn modifiers(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.opcode.split('.').skip(1).map(str::trim)
    }

    /// Tells whether the opcode has `modifier`, named without its dot.
    #[must_use]
    pub fn has_modifier(&self, modifier: &str) -> bool {
        self.modifiers().any(|part| part == modifier)
    }

    /// Tells whether the instruction calls a function, directly or not.
    #[must_use]
    pub fn is_call(&self) -> bool {
        self.name() == "call"
    }

    /// Returns the name of the function that a call names; `None` for indirect calls and other instructions.
    #[must_use]
    pub fn callee(&self) -> Option<&'a str> {
        self.called().filter(|(_, direct)| *direct).map(|(operand, _)| operand.text)
    }

    /// Tells whether the instruction calls through a register: a list of targets or a prototype ends it.
    #[must_use]
    pub fn is_indirect_call(&self) -> bool {
        self.called().is_some_and(|(_, direct)| !direct)
    }

    /// Returns what a call calls, and whether that is a function's name.
    fn called(&self) -> Option<(&Operand<'a>, bool)> {
        if !self.is_call() {
            return None;
        }
        let results = usize::from(self.operands.first().is_some_and(Operand::is_list));
        let (called, rest) = self.operands.get(results..)?.split_first()?;
        // An indirect call ends with its targets or prototype, a direct one with the name or with arguments.
        let direct = rest.last().is_none_or(Operand::is_list) && !called.text.starts_with('%');
        Some((called, direct))
    }
}

impl Operand<'_> {
    /// Tells whether the operand is a list in parentheses.
    fn is_list(&self) -> bool {
        self.text.starts_with('(')
    }
}
