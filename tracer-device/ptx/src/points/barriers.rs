//! Barriers and phases of waits, as far as a function's text shows them. A register with one writing
//! instruction is evaluated from that instruction's operands. Registers that are written several times,
//! loaded values and parameters are unknown.

use std::collections::HashMap;
use std::fmt;

use super::waits::results;
use crate::parse::parse_i64;
use crate::{Body, Instruction};

/// Maximum depth of instructions to follow from a register to its operands.
const MAX_DEPTH: u32 = 16;

/// An address, possibly known only in part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct KnownAddress<'a> {
    pub(super) variable: Option<&'a str>,
    /// Bytes from the variable's start.
    pub(super) offset: Option<i64>,
}

impl KnownAddress<'_> {
    const UNKNOWN: Self = Self { variable: None, offset: None };

    pub(super) fn is_known(self) -> bool {
        self.variable.is_some() && self.offset.is_some()
    }

    /// Returns true if the two addresses may be equal.
    pub(super) fn may_be(self, other: Self) -> bool {
        let is_same_variable = match (self.variable, other.variable) {
            (Some(one), Some(other)) => one == other,
            _ => true,
        };
        is_same_variable && self.offset.zip(other.offset).is_none_or(|(one, other)| one == other)
    }
}

impl fmt::Display for KnownAddress<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.variable, self.offset) {
            (None, _) => out.write_str("?"),
            (Some(variable), Some(0)) => out.write_str(variable),
            (Some(variable), Some(offset)) => write!(out, "{variable}{offset:+}"),
            (Some(variable), None) => write!(out, "{variable}+?"),
        }
    }
}

/// A wait's barrier and the phase that ends the wait. Empty if not applicable, `?` if known only at run time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Barrier {
    pub(super) name: String,
    pub(super) phase: String,
}

/// The writing instruction of each register of a function.
pub(super) struct Registers<'b, 'a> {
    /// `None` if several instructions write the register.
    written: HashMap<&'a str, Option<&'b Instruction<'a>>>,
}

enum Value<'a> {
    Number(i64),
    Address(KnownAddress<'a>),
}

impl<'b, 'a> Registers<'b, 'a> {
    pub(super) fn new(body: &'b Body<'a>) -> Self {
        let mut written: HashMap<&str, Option<&Instruction<'_>>> = HashMap::new();
        // A barrier writes a register only if it counts or votes.
        let writes = |it: &Instruction<'_>| !matches!(it.name(), "bar" | "barrier") || it.has_modifier("red");
        for (_, instruction) in body.instructions().filter(|(_, it)| writes(it)) {
            for name in results(instruction) {
                written.entry(name).and_modify(|known| *known = None).or_insert(Some(instruction));
            }
        }
        Self { written }
    }

    pub(super) fn barrier(&self, instruction: &Instruction<'a>) -> Barrier {
        let operand = |index: usize| instruction.operands.get(index).map_or("", |operand| operand.text);
        let number = |text| self.number(text).map_or_else(|| "?".to_owned(), |number| number.to_string());
        let (name, phase) = match instruction.name() {
            "barrier" if instruction.has_modifier("cluster") => ("cluster".to_owned(), String::new()),
            "bar" if instruction.has_modifier("warp") => ("warp".to_owned(), String::new()),
            // With `red`, the first operand is the result.
            "bar" | "barrier" => {
                let at = usize::from(instruction.has_modifier("red"));
                (format!("bar {}", number(operand(at))), String::new())
            }
            "mbarrier" => {
                let phase =
                    if instruction.has_modifier("parity") { number(operand(2)) } else { "?".to_owned() };
                (format!("mbarrier {}", self.place(operand(1))), phase)
            }
            _ => Default::default(),
        };
        Barrier { name, phase }
    }

    pub(super) fn place(&self, operand: &'a str) -> KnownAddress<'a> {
        let text = operand.trim_start_matches('[').trim_end_matches(']').trim();
        let (base, offset) = match text.find(['+', '-']) {
            None => (text, Some(0)),
            Some(at) if text[at..].starts_with("+-") => (&text[..at], parse_i64(text[at + 1..].trim())),
            Some(at) => (&text[..at], parse_i64(text[at..].trim_start_matches('+').trim())),
        };
        match self.value(base.trim(), MAX_DEPTH) {
            Some(Value::Address(place)) => {
                let offset = place.offset.zip(offset).map(|(one, other)| one.wrapping_add(other));
                KnownAddress { offset, ..place }
            }
            _ => KnownAddress::UNKNOWN,
        }
    }

    pub(super) fn number(&self, word: &'a str) -> Option<i64> {
        match self.value(word, MAX_DEPTH)? {
            Value::Number(number) => Some(number),
            Value::Address(_) => None,
        }
    }

    fn value(&self, word: &'a str, depth: u32) -> Option<Value<'a>> {
        if let Some(number) = parse_i64(word) {
            return Some(Value::Number(number));
        }
        if !word.starts_with('%') && !self.written.contains_key(word) {
            let is_name = word.starts_with(|c: char| c.is_ascii_alphabetic() || "_$".contains(c));
            return is_name.then_some(Value::Address(KnownAddress { variable: Some(word), offset: Some(0) }));
        }
        let instruction = (*self.written.get(word)?).filter(|_| depth > 0)?;
        if instruction.guard.is_some() {
            return None;
        }
        let operand = |index: usize| {
            let text = instruction.operands.get(index)?.text;
            self.value(text, depth - 1)
        };
        match instruction.name() {
            "mov" | "cvta" | "cvt" => operand(1),
            "add" => {
                let (one, other) = (operand(1), operand(2));
                match (one, other) {
                    (Some(Value::Number(one)), Some(Value::Number(other))) => {
                        Some(Value::Number(one.wrapping_add(other)))
                    }
                    (Some(Value::Address(place)), Some(Value::Number(number)))
                    | (Some(Value::Number(number)), Some(Value::Address(place))) => {
                        let offset = place.offset.map(|offset| offset.wrapping_add(number));
                        Some(Value::Address(KnownAddress { offset, ..place }))
                    }
                    (Some(Value::Address(place)), None) | (None, Some(Value::Address(place))) => {
                        Some(Value::Address(KnownAddress { offset: None, ..place }))
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }
}
