//! Random kernels: nested branches and loops, with everything that may prevent counting a loop.

use std::fmt::Write;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;

use super::WORDS;

const LENGTH: u32 = 26;
/// Maximum nesting depth of branches and loops.
const DEPTH: u32 = 4;

const HEAD: &str = ".version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 k_param_0, .param .u64 k_param_1, .param .u32 k_param_2)
{
	.reg .pred %p<4>;
	.reg .b32 %r<8>;
	.reg .b32 %v<8>;
	.reg .b32 %c<40>;
	.reg .b64 %rd<8>;
	ld.param.u64 %rd1, [k_param_0];
	ld.param.u64 %rd2, [k_param_1];
	ld.param.u32 %r1, [k_param_2];
	mov.u32 %r2, %tid.x;
	mov.u32 %r3, %ctaid.x;
	mov.u32 %v0, 3;
	mov.u32 %v1, %r1;
	mov.u32 %v2, %r3;
	mov.u32 %v3, %r2;
	mov.u32 %v4, 1;
	mov.u32 %v5, 2;
";

pub(super) fn kernel(random: &mut ChaCha8Rng) -> String {
    let mut generator = Generator {
        random,
        text: HEAD.to_owned(),
        labels: 0,
        counters: 0,
        location: 0,
        length: 0,
        next_bound: None,
    };
    generator.statements(0, None);
    while generator.length < LENGTH / 2 {
        generator.statement(0, None);
    }
    generator.text.push_str("END:\n\tand.b32 %r6, %v0, 63;\n\tmul.wide.u32 %rd5, %r6, 4;\n\tadd.u64 %rd5, %rd5, %rd2;\n\tmov.u32 %r7, 1;\n\tred.global.add.u32 [%rd5], %r7;\n\tret;\n}\n");
    generator.text
}

struct Generator<'r> {
    random: &'r mut ChaCha8Rng,
    text: String,
    labels: u32,
    counters: u32,
    location: u16,
    length: u32,
    next_bound: Option<String>,
}

impl Generator<'_> {
    fn below(&mut self, limit: u32) -> u32 {
        self.random.next_u32() % limit
    }

    fn one_in(&mut self, number: u32) -> bool {
        self.below(number) == 0
    }

    fn line(&mut self, line: &str) {
        let _ = writeln!(self.text, "\t{line}");
    }

    fn label(&mut self) -> String {
        self.labels += 1;
        format!("L{}", self.labels)
    }

    fn place(&mut self, label: &str) {
        let _ = writeln!(self.text, "{label}:");
    }

    fn location(&mut self) -> u16 {
        self.location += 1;
        self.location
    }

    /// All variables hold small numbers.
    fn variable(&mut self) -> String {
        format!("%v{}", self.below(6))
    }

    fn statements(&mut self, depth: u32, around: Option<&str>) {
        for _ in 0..1 + self.below(3) {
            self.statement(depth, around);
        }
    }

    /// Writes a statement. `around` is the label after the enclosing loop.
    fn statement(&mut self, depth: u32, around: Option<&str>) {
        self.length += 1;
        if self.length > LENGTH || depth >= DEPTH {
            return self.simple();
        }
        match self.below(12) {
            0..3 => self.simple(),
            3 => {
                let location = self.location();
                self.line(&format!("// warptrace.loc {location}"));
            }
            4..6 => self.branch(depth, around),
            6..10 => self.counted(depth),
            10 => self.plain_loop(depth),
            _ => match around {
                Some(label) => {
                    let predicate = self.predicate();
                    self.line(&format!("@{predicate} bra {label};"));
                }
                None => self.simple(),
            },
        }
    }

    fn simple(&mut self) {
        let (to, one, other) = (self.variable(), self.variable(), self.variable());
        match self.below(15) {
            0..2 => self.line(&format!("mov.u32 {to}, {};", self.labels % 5)),
            2 => self.line(&format!("mov.u32 {to}, %ctaid.x;")),
            3..6 => {
                self.line(&format!("add.u32 %r6, {one}, {other};"));
                self.line(&format!("and.b32 {to}, %r6, 7;"));
            }
            6 => self.line(&format!("xor.b32 {to}, {one}, {other};")),
            7 => {
                let predicate = self.predicate();
                self.line(&format!("@{predicate} mov.u32 {to}, {one};"));
            }
            8 => self.load(&to, &one),
            9 => {
                self.line("mov.u32 %r6, %laneid;");
                self.line(&format!("and.b32 {to}, %r6, 3;"));
            }
            10 => {
                self.line("mov.u32 %r7, 1;");
                self.line("atom.global.add.u32 %r6, [%rd2], %r7;");
                self.line(&format!("and.b32 {to}, %r6, 3;"));
            }
            11 => {
                self.line(&format!("setp.lt.u32 %p3, {one}, {other};"));
                self.line("activemask.b32 %r6;");
                self.line("vote.sync.any.pred %p3, %p3, %r6;");
                self.line(&format!("selp.u32 {to}, 1, 2, %p3;"));
            }
            12 => {
                self.line("activemask.b32 %r6;");
                self.line("mov.u32 %r7, %laneid;");
                self.line(&format!("shfl.sync.idx.b32 {to}, {one}, %r7, 31, %r6;"));
            }
            13 => self.line(&format!("mov.u32 {to}, %r1;")),
            _ => self.line(&format!("mul.lo.u32 {to}, {to}, 1;")),
        }
    }

    fn load(&mut self, to: &str, at: &str) {
        self.line(&format!("and.b32 %r6, {at}, {};", WORDS - 1));
        self.line("mul.wide.u32 %rd3, %r6, 4;");
        self.line("add.u64 %rd3, %rd3, %rd1;");
        self.line("ld.global.u32 %r6, [%rd3];");
        self.line(&format!("and.b32 {to}, %r6, 7;"));
    }

    /// Writes a predicate, which is mostly uniform.
    fn predicate(&mut self) -> String {
        match self.below(5) {
            0 => {
                let bit = 1 << self.below(4);
                self.line(&format!("and.b32 %r6, %r2, {bit};"));
                self.line("setp.eq.u32 %p1, %r6, 0;");
            }
            1 => {
                let bound = self.below(4);
                self.line(&format!("setp.gt.u32 %p1, %r1, {};", bound + 3));
            }
            2 => {
                let bound = self.below(2);
                self.line(&format!("setp.eq.u32 %p1, %r3, {bound};"));
            }
            _ => {
                let (one, bound) = (self.variable(), self.below(6));
                self.line(&format!("setp.gt.u32 %p1, {one}, {bound};"));
            }
        }
        if self.one_in(2) { "%p1".to_owned() } else { "!%p1".to_owned() }
    }

    fn branch(&mut self, depth: u32, around: Option<&str>) {
        let (other, end) = (self.label(), self.label());
        let predicate = self.predicate();
        self.line(&format!("@{predicate} bra {other};"));
        self.statements(depth + 1, around);
        if self.one_in(2) {
            self.line(&format!("bra {end};"));
            self.place(&other);
            self.statements(depth + 1, around);
        } else {
            self.place(&other);
        }
        self.place(&end);
    }

    fn bound(&mut self) -> (String, String) {
        self.counters += 1;
        let counter = format!("%c{}", self.counters % 40);
        if let Some(bound) = self.next_bound.take() {
            return (counter, bound);
        }
        let bound = match self.below(6) {
            0 => "3".to_owned(),
            1..3 => "%r1".to_owned(),
            _ => self.variable(),
        };
        (counter, bound)
    }

    /// Writes a loop whose iterations are not events.
    fn plain_loop(&mut self, depth: u32) {
        let (head, end) = (self.label(), self.label());
        let (counter, bound) = self.bound();
        self.line(&format!("mov.u32 {counter}, 0;"));
        self.place(&head);
        self.line(&format!("add.u32 {counter}, {counter}, 1;"));
        self.statements(depth + 1, Some(&end));
        self.line(&format!("setp.lt.u32 %p2, {counter}, 3;"));
        self.line(&format!("setp.lt.and.u32 %p2, {counter}, {bound}, %p2;"));
        self.line(&format!("@%p2 bra {head};"));
        self.place(&end);
        if self.one_in(2) {
            let to = self.variable();
            self.line(&format!("mov.u32 {to}, {counter};"));
            self.next_bound = Some(to);
        }
    }

    /// Writes a loop whose iterations are events. Sometimes it contains something that prevents counting.
    fn counted(&mut self, depth: u32) {
        let (location, head, end) = (self.location(), self.label(), self.label());
        let (counter, bound) = self.bound();
        self.line(&format!("mov.u32 {counter}, 0;"));
        // Lanes that do not enter the loop skip it or its start.
        let skip = match self.below(8) {
            0 => Some(self.predicate()),
            _ => None,
        };
        if self.one_in(12) {
            // Lanes enter in two ways and join in the loop.
            let (predicate, other) = (self.predicate(), self.label());
            self.line(&format!("@{predicate} bra {other};"));
            self.line(&format!("// warptrace.loop.enter {location}"));
            self.simple();
            self.line(&format!("bra {head};"));
            self.place(&other);
            self.line(&format!("// warptrace.loop.enter {location}"));
            self.simple();
        } else if let Some(predicate) = skip.as_ref().filter(|_| self.labels.is_multiple_of(2)) {
            self.line(&format!("@{predicate} bra {head};"));
            self.line(&format!("// warptrace.loop.enter {location}"));
        } else {
            self.line(&format!("// warptrace.loop.enter {location}"));
            if let Some(predicate) = &skip {
                self.line(&format!("@{predicate} bra {end};"));
            }
        }
        self.place(&head);
        self.line(&format!("// warptrace.loop.tick {location} 1"));
        self.line(&format!("add.u32 {counter}, {counter}, 1;"));
        if self.one_in(3) {
            self.line(&format!("// warptrace.loop.tick {location} 1"));
        }
        let leave = format!("// warptrace.loop.leave {location}");
        let after = self.label();
        for _ in 0..self.below(3) {
            match self.below(22) {
                0 => self.line("bar.sync 0;"),
                1 => {
                    let other = self.location();
                    self.line(&format!("// warptrace.loc {other}"));
                }
                2 => {
                    let predicate = self.predicate();
                    self.line(&format!("@{predicate} ret;"));
                }
                3..6 => {
                    let (predicate, over) = (self.predicate(), self.label());
                    self.line(&format!("@{predicate} bra {over};"));
                    self.simple();
                    self.place(&over);
                }
                6..8 => {
                    let predicate = self.predicate();
                    self.line(&format!("@{predicate} bra {end};"));
                }
                8..10 => {
                    let (predicate, stay) = (self.predicate(), self.label());
                    self.line(&format!("@{predicate} bra {stay};"));
                    self.line(&leave);
                    self.line(&format!("bra {after};"));
                    self.place(&stay);
                }
                10 if depth < DEPTH => self.counted(depth + 1),
                _ => self.simple(),
            }
        }
        self.line(&format!("setp.lt.u32 %p2, {counter}, {};", 2 + self.labels % 4));
        self.line(&format!("setp.lt.and.u32 %p2, {counter}, {bound}, %p2;"));
        self.line(&format!("@%p2 bra {head};"));
        self.place(&end);
        self.line(&leave);
        self.place(&after);
    }
}
