//! Derived addresses: addresses of a block that differ from an earlier access by a constant. All lanes that
//! enter a block execute all of its instructions, or all with the same predicate, so they execute such
//! accesses equally often and in order. Register contents are followed through moves and through sums with
//! numbers and registers, modulo 2^32 or 2^64 as on the device. Every other result is a new unknown.

use std::collections::HashMap;

use warptrace_abi::marker::DataGuard;

use crate::Instruction;
use crate::parse::parse_i64;
use crate::registers::{Registers, bits};
use crate::uniform::words;

/// A register: its declaring statement and its name.
type Key<'a> = (usize, &'a str);

/// Content of a register: an unknown, by its number, plus a constant.
#[derive(Clone, Copy)]
struct Value {
    base: usize,
    offset: i64,
}

/// Accesses whose addresses differ by constants: the base of the addresses, and the guard.
type Family = (usize, Option<(usize, bool)>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Follows {
    pub(super) root: usize,
    pub(super) offset: i64,
    pub(super) is_narrow: bool,
}

/// Contents of the registers at the current statement of a block.
pub(super) struct Values<'r, 'a> {
    registers: &'r Registers<'a>,
    block: Option<usize>,
    held: HashMap<Key<'a>, Value>,
    /// Bases of sums of two bases.
    sums: HashMap<(usize, usize), usize>,
    /// The first access of each family, and the constant in its address.
    roots: HashMap<Family, (usize, i64)>,
    next: usize,
}

/// Instructions after which some lanes may not continue.
const MAY_NOT_RETURN: [&str; 5] = ["call", "trap", "brkpt", "exit", "ret"];

impl<'r, 'a> Values<'r, 'a> {
    pub(super) fn new(registers: &'r Registers<'a>) -> Self {
        let (held, sums, roots) = (HashMap::new(), HashMap::new(), HashMap::new());
        Self { registers, block: None, held, sums, roots, next: 0 }
    }

    pub(super) fn enter(&mut self, block: usize) {
        if self.block.replace(block) != Some(block) {
            self.forget();
        }
    }

    fn forget(&mut self) {
        self.held.clear();
        self.sums.clear();
        self.roots.clear();
    }

    fn new_value(&mut self) -> Value {
        self.next += 1;
        Value { base: self.next, offset: 0 }
    }

    /// Returns the content of a register and its size in bits; `None` if the name is not a register.
    fn read(&mut self, name: &'a str, statement: usize) -> Option<(Value, u32)> {
        let (declared, ty) = self.registers.declared(name, statement)?;
        let value = match self.held.get(&(declared, name)) {
            Some(value) => *value,
            None => {
                let value = self.new_value();
                self.held.insert((declared, name), value);
                value
            }
        };
        Some((value, bits(ty)?))
    }

    /// Returns the derivation of an access if an earlier access of the block has the same base and guard.
    /// Otherwise the access becomes the root `number` of later ones.
    pub(super) fn access(
        &mut self,
        number: usize,
        (register, added): (&'a str, i64),
        guard: Option<DataGuard<'a>>,
        statement: usize,
    ) -> Option<Follows> {
        let (value, bits) = self.read(register, statement)?;
        let guard = match guard {
            None => None,
            Some(guard) => Some((self.read(guard.predicate, statement)?.0.base, guard.negated)),
        };
        let (is_narrow, constant) = (bits == 32, value.offset.wrapping_add(added));
        let (root, first) = *self.roots.entry((value.base, guard)).or_insert((number, constant));
        let offset = constant.wrapping_sub(first);
        let offset = if is_narrow { i64::from(offset as i32) } else { offset };
        (root != number).then_some(Follows { root, offset, is_narrow })
    }

    pub(super) fn step(&mut self, instruction: &Instruction<'a>, statement: usize) {
        if MAY_NOT_RETURN.contains(&instruction.name()) {
            return self.forget();
        }
        let Some(result) = instruction.operands.first().filter(|operand| !operand.text.starts_with('['))
        else {
            return;
        };
        // Lanes with a false predicate keep the old value.
        let value = if instruction.guard.is_some() { None } else { self.result(instruction, statement) };
        for name in words(result.text) {
            if let Some((declared, _)) = self.registers.declared(name, statement) {
                let value = value.unwrap_or_else(|| self.new_value());
                self.held.insert((declared, name), value);
            }
        }
    }

    /// Returns the result of a move or a sum; `None` for other instructions.
    fn result(&mut self, instruction: &Instruction<'a>, statement: usize) -> Option<Value> {
        let mut modifiers = instruction.modifiers();
        let (ty, None) = (modifiers.next()?, modifiers.next()) else { return None };
        let width = bits(self.registers.declared(instruction.operands.first()?.text, statement)?.1)?;
        if !matches!(width, 32 | 64) || bits(ty) != Some(width) {
            return None;
        }
        let mut operand = |at: usize| {
            let (value, bits) = self.read(instruction.operands.get(at)?.text, statement)?;
            (bits == width).then_some(value)
        };
        let (one, other) = (operand(1), operand(2));
        let number = |at: usize| parse_i64(instruction.operands.get(at)?.text);
        let plus = |value: Value, added: i64| Value { offset: value.offset.wrapping_add(added), ..value };
        match instruction.name() {
            "mov" => one,
            "add" | "sub" if ty.starts_with('f') => None,
            "sub" => Some(plus(one?, number(2)?.wrapping_neg())),
            "add" => match (one, other) {
                (Some(one), Some(other)) => {
                    let bases = (one.base.min(other.base), one.base.max(other.base));
                    let base = match self.sums.get(&bases) {
                        Some(base) => *base,
                        None => {
                            let base = self.new_value().base;
                            self.sums.insert(bases, base);
                            base
                        }
                    };
                    Some(Value { base, offset: one.offset.wrapping_add(other.offset) })
                }
                (Some(value), None) => Some(plus(value, number(2)?)),
                (None, Some(value)) => Some(plus(value, number(1)?)),
                (None, None) => None,
            },
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::points::{PointOptions, mark};

    /// Returns the derived sites: site, root, offset, and whether addresses have 32 bits.
    fn derived(body: &str) -> Vec<(u16, u16, i64, bool)> {
        let text = format!(
            ".version 8.0\n.target sm_90\n.address_size 64
.func f() {{ ret; }}
.entry k() {{
.reg .pred %p<4>; .reg .b32 %r<8>; .reg .f32 %f<8>; .reg .b64 %rd<8>;
{body}
ret;\n}}"
        );
        let accesses = warptrace_abi::recording::Spaces::ALL;
        let marked = mark(&text, &PointOptions { accesses, ..PointOptions::default() }).expect("it is PTX");
        assert_eq!(marked.unrecorded, []);
        let of =
            |site: &crate::points::Site| site.derived.map(|it| (site.id, it.root, it.offset, it.is_narrow));
        marked.sites.iter().filter_map(of).collect()
    }

    #[test]
    fn sums_with_numbers_are_followed() {
        let loads = "ld.f32 %f1, [%rd1]; ld.f32 %f1, [%rd1+-4]; st.v4.f32 [%rd1+16], {%f1, %f1, %f1, %f1};";
        assert_eq!(derived(loads), [(2, 1, -4, false), (3, 1, 16, false)]);
        // A register that is incremented keeps its base.
        let moved = "ld.f32 %f1, [%rd1+8]; add.s64 %rd1, %rd1, 64; mov.b64 %rd2, %rd1; sub.u64 %rd3, %rd2, 0x10;
            ld.f32 %f1, [%rd1]; ld.f32 %f1, [%rd2]; ld.f32 %f1, [%rd3+4]; add.s64 %rd4, -8, %rd3; ld.f32 %f1, [%rd4];";
        let offsets = [(2, 1, 56, false), (3, 1, 56, false), (4, 1, 44, false), (5, 1, 32, false)];
        assert_eq!(derived(moved), offsets);
        // Sums of the same two registers have the same base, in any order of additions.
        let sums = "add.s64 %rd3, %rd1, %rd2; add.s64 %rd4, %rd1, 8; add.s64 %rd5, %rd2, %rd4;
            ld.f32 %f1, [%rd3]; ld.f32 %f1, [%rd5]; add.s64 %rd6, %rd1, %rd1; ld.f32 %f1, [%rd6];";
        assert_eq!(derived(sums), [(3, 1, 8, false)]);
        let narrow = "ld.shared.f32 %f1, [%r1]; add.s32 %r2, %r1, -2147483648; ld.shared.f32 %f1, [%r2+-4];";
        assert_eq!(derived(narrow), [(2, 1, i64::from(i32::MAX) - 3, true)]);
    }

    #[test]
    fn what_is_not_followed_is_something_new() {
        for between in [
            "mul.lo.s64 %rd1, %rd1, 4;",
            "@%p1 add.s64 %rd1, %rd1, 4;",
            "add.cc.s64 %rd1, %rd1, 4;",
            "ld.b64 %rd1, [%rd2]; ",
            "mov.b64 {%r1, %r2}, %rd2; mov.b64 %rd1, {%r1, %r2};",
            "add.s64 %rd1, %rd1, 010;",
            "sub.s64 %rd1, %rd1, %rd3;",
            "cvta.global.u64 %rd1, %rd1;",
            "atom.add.u64 %rd1, [%rd3], 8;",
            "setp.eq.u32 %p1|%p2, %r1, 4; selp.b64 %rd1, %rd1, %rd3, %p1;",
            "shfl.sync.down.b32 %r1|%p1, %r2, 1, 31, -1; cvt.u64.u32 %rd1, %r1;",
        ] {
            let body = format!("st.f32 [%rd1], %f1; {between} st.f32 [%rd1+4], %f1;");
            assert_eq!(derived(&body), [], "{between}");
        }
        // A conversion from 32 to 64 bits is not followed.
        assert_eq!(derived("ld.f32 %f1, [%r1]; cvt.u64.u32 %rd1, %r1; ld.f32 %f1, [%rd1];"), []);
        assert_eq!(derived("add.sat.s32 %r2, %r1, 4; ld.f32 %f1, [%r1]; ld.f32 %f1, [%r2];"), []);
    }

    #[test]
    fn the_same_lanes_execute_both() {
        // In another block, after a call, and after a branch.
        for between in ["call f;", "@%p1 trap;", "@%p1 bra $L; $L:", "@%p1 exit;", "$L: @%p1 bra $L;"] {
            let body = format!("st.f32 [%rd1], %f1; {between} st.f32 [%rd1+4], %f1;");
            assert_eq!(derived(&body), [], "{between}");
        }
        let still = "st.f32 [%rd1], %f1; bar.sync 0; $UNUSED: nanosleep.u32 %r1; st.f32 [%rd1+4], %f1;";
        assert_eq!(derived(still), [(2, 1, 4, false)]);
        let guards =
            "@%p1 ld.f32 %f1, [%rd1]; ld.f32 %f1, [%rd1]; @!%p1 ld.f32 %f1, [%rd1]; @%p2 ld.f32 %f1, [%rd1];
            @%p1 ld.f32 %f1, [%rd1+4]; ld.f32 %f1, [%rd1+8]; @!%p1 ld.f32 %f1, [%rd1+12];
            setp.eq.u32 %p1, %r1, %r2; @%p1 ld.f32 %f1, [%rd1+16]; @%p1 ld.f32 %f1, [%rd1+20];";
        // Roots have the first numbers: 1 to 4, and 5 for the new predicate.
        let found = [(6, 1, 4, false), (7, 2, 8, false), (8, 3, 12, false), (9, 5, 4, false)];
        assert_eq!(derived(guards), found);
        // An instruction reads its address before it writes the register.
        assert_eq!(derived("ld.b64 %rd1, [%rd1]; ld.b64 %rd1, [%rd1];"), []);
        assert_eq!(derived("ld.b64 %rd2, [%rd1]; ld.b64 %rd1, [%rd1+8];"), [(2, 1, 8, false)]);
    }

    #[test]
    fn registers_of_scopes_are_their_own() {
        let body = "ld.f32 %f1, [%rd1]; { .reg .b64 %rd1; mov.b64 %rd1, %rd2; ld.f32 %f1, [%rd1]; ld.f32 %f1, [%rd1+4]; }
            { .reg .b64 %rd1; ld.f32 %f1, [%rd1]; } ld.f32 %f1, [%rd1+8]; ld.f32 %f1, [%rd2+12];";
        assert_eq!(derived(body), [(4, 2, 4, false), (5, 1, 8, false), (6, 2, 12, false)]);
    }
}
