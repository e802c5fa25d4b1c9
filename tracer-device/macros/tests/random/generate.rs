//! Generator of random Rust: terminating functions on numbers that use every kind of branch, wherever an
//! expression or a statement is allowed. All of them compile. Their results have no meaning.

mod prelude;
mod statements;

use std::fmt::Write;

use self::prelude::{KERNEL, PRELUDE};

/// Functions per module. The ids of their locations fit.
const PER_MODULE: u64 = 250;
/// Functions call only functions of lower levels, so they terminate soon.
const LEVELS: u64 = 4;

/// Returns the functions, each in a traced and in an untraced module.
pub(crate) fn modules(functions: u64, seed: u64) -> String {
    let groups = functions.div_ceil(PER_MODULE);
    let mut text = format!("/// Number of functions.\npub const FUNCTIONS: u32 = {functions};\n");
    let mut traced = format!(
        "pub const PER_MODULE: u32 = {PER_MODULE};\npub const MODULES: &[(u32, &warptrace::device::KernelModule)] = &["
    );
    let (mut plain, mut calls, mut launches) = (String::new(), String::new(), String::new());
    for group in 0..groups {
        let first = group * PER_MODULE;
        let count = PER_MODULE.min(functions - first);
        let mut writer = Writer::new(seed.wrapping_mul(1_000_003).wrapping_add(group));
        let items = writer.items(count);
        _ = write!(traced, "({first}, &g{group}::MODULE), ");
        _ = writeln!(calls, "{group} => g{group}::dispatch(number % {PER_MODULE}, seed),");
        _ = writeln!(launches, "{group} => g{group}::run(out, number % {PER_MODULE}),");
        _ = writeln!(plain, "pub mod g{group} {{\n{items}\n}}");
        _ = writeln!(
            text,
            "#[warptrace::kernels]\npub mod traced_g{group} {{\n//! Group {group}.\n#![allow(warnings)]\n{KERNEL}{items}\n}}"
        );
    }
    let call = format!(
        "pub fn call(number: u32, seed: u32) -> u32 {{\nmatch u64::from(number) / {PER_MODULE} {{\n{calls}_ => unreachable!(),\n}}\n}}\n"
    );
    traced += "];\n";
    for group in 0..groups {
        _ = writeln!(traced, "use super::traced_g{group} as g{group};");
    }
    _ = writeln!(
        text,
        "pub mod traced {{\n{traced}{call}\npub fn launch<'a>(number: u32, out: &'a warptrace::Buffer<u32>) -> warptrace::device::SafeCall<'a> {{\nmatch u64::from(number) / {PER_MODULE} {{\n{launches}_ => unreachable!(),\n}}\n}}\n}}"
    );
    _ = writeln!(text, "pub mod plain {{\n{plain}{call}}}");
    text
}

#[derive(Clone, Copy, PartialEq)]
enum Type {
    Word,
    Long,
    Bool,
}

/// The signature and the call syntax of a function.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// `f(a, b) -> u32`
    Plain,
    /// `o(a, b) -> Option<u32>`, which uses `?`.
    Option,
    /// `e(a, b) -> Result<u32, u32>`, which uses `?`.
    Result,
    /// `r(&[u32; 2], a) -> &u32`: the result borrows from a temporary.
    Borrows,
    /// `pair.m(a) -> u32`
    Method,
    /// `pair.w(a) -> u32`, which changes the pair.
    Changes,
}

const KINDS: [Kind; 6] =
    [Kind::Plain, Kind::Option, Kind::Result, Kind::Borrows, Kind::Method, Kind::Changes];

struct Variable {
    name: String,
    of: Type,
    mutable: bool,
}

struct Writer {
    state: u64,
    /// Functions so far: kind and level. The name of a function is its index.
    functions: Vec<(Kind, u64)>,
    level: u64,
    kind: Kind,
    scope: Vec<Variable>,
    names: u64,
    /// Labels of the enclosing loops.
    loops: Vec<String>,
    /// Whether expressions must not change variables.
    pure: bool,
}

impl Writer {
    fn new(seed: u64) -> Self {
        Self {
            state: seed,
            functions: Vec::new(),
            level: 0,
            kind: Kind::Plain,
            scope: Vec::new(),
            names: 0,
            loops: Vec::new(),
            pure: false,
        }
    }

    /// Returns a number below `limit` (splitmix64).
    fn below(&mut self, limit: usize) -> usize {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.state;
        x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((x ^ x >> 31) % limit as u64) as usize
    }

    fn one_in(&mut self, chances: usize) -> bool {
        self.below(chances) == 0
    }

    fn name(&mut self) -> String {
        self.names += 1;
        format!("v{}", self.names)
    }

    /// Returns the module's functions, and a dispatcher that calls each by its number.
    fn items(&mut self, count: u64) -> String {
        let mut text = String::from(PRELUDE);
        let mut arms = String::new();
        for number in 0..count {
            let kind = KINDS[self.below(KINDS.len())];
            text += &self.function(number, kind);
            let call = match kind {
                Kind::Plain => format!("f{number}(seed, seed ^ 0x55)"),
                Kind::Option => format!("o{number}(seed, 3).unwrap_or(77)"),
                Kind::Result => format!("e{number}(seed, 5).unwrap_or_else(|error| error + 1)"),
                Kind::Borrows => format!("*r{number}(&[seed, 9], seed)"),
                Kind::Method => format!("Pair {{ a: seed, b: 2 }}.m{number}(seed)"),
                Kind::Changes => format!("Pair {{ a: 4, b: seed }}.w{number}(seed)"),
            };
            _ = writeln!(arms, "{number} => {call},");
        }
        _ = writeln!(
            text,
            "pub fn dispatch(number: u32, seed: u32) -> u32 {{\nmatch number {{\n{arms}_ => 0,\n}}\n}}"
        );
        text
    }

    fn function(&mut self, number: u64, kind: Kind) -> String {
        (self.level, self.kind, self.names) = (number % LEVELS, kind, 0);
        let mutable = self.one_in(2);
        let argument = |name: &str| Variable { name: name.to_owned(), of: Type::Word, mutable };
        self.scope = vec![argument("a")];
        let word = if mutable { "mut " } else { "" };
        let signature = match kind {
            Kind::Plain => format!("pub fn f{number}({word}a: u32, {word}b: u32) -> u32"),
            Kind::Option => format!("pub fn o{number}({word}a: u32, {word}b: u32) -> Option<u32>"),
            Kind::Result => format!("pub fn e{number}({word}a: u32, {word}b: u32) -> Result<u32, u32>"),
            Kind::Borrows => format!("pub fn r{number}<'s>(s: &'s [u32; 2], {word}a: u32) -> &'s u32"),
            Kind::Method => format!("pub fn m{number}(&self, {word}a: u32) -> u32"),
            Kind::Changes => format!("pub fn w{number}(&mut self, {word}a: u32) -> u32"),
        };
        if matches!(kind, Kind::Plain | Kind::Option | Kind::Result) {
            self.scope.push(argument("b"));
        }
        let statements = self.statements(2, 3);
        let tail = self.tail(3);
        let text = format!("{signature} {{\n{statements}{tail}\n}}\n");
        self.functions.push((kind, self.level));
        if matches!(kind, Kind::Method | Kind::Changes) { format!("impl Pair {{\n{text}}}\n") } else { text }
    }

    fn tail(&mut self, depth: u32) -> String {
        let ends_by_return = self.one_in(8);
        let value = self.value(depth);
        if ends_by_return { format!("return {value};") } else { value }
    }

    fn value(&mut self, depth: u32) -> String {
        let way = self.below(4);
        match (self.kind, way) {
            (Kind::Plain | Kind::Method | Kind::Changes, _) => self.expression(Type::Word, depth),
            (Kind::Option, 0) => self.option(depth),
            (Kind::Option, 1) => "None".to_owned(),
            (Kind::Option, _) => format!("Some({})", self.expression(Type::Word, depth)),
            (Kind::Result, 0) => format!("Err({})", self.expression(Type::Word, depth)),
            (Kind::Result, _) => format!("Ok({})", self.expression(Type::Word, depth)),
            (Kind::Borrows, 0 | 1) => {
                let (condition, other) = (self.condition(depth), self.expression(Type::Word, 1));
                format!("if {condition} {{ &s[0] }} else {{ &s[({other}) as usize % 2] }}")
            }
            (Kind::Borrows, _) => format!("&s[({}) as usize % 2]", self.expression(Type::Word, depth)),
        }
    }

    /// Picks a function of this kind and a lower level.
    fn callee(&mut self, kind: Kind) -> Option<usize> {
        let level = self.level;
        let known: Vec<usize> = (0..self.functions.len())
            .rev()
            .filter(|&number| self.functions[number].0 == kind && self.functions[number].1 < level)
            .take(20)
            .collect();
        (!known.is_empty()).then(|| known[self.below(known.len())])
    }

    fn variable(&mut self, of: Type) -> Option<String> {
        let known: Vec<String> =
            self.scope.iter().filter(|found| found.of == of).map(|found| found.name.clone()).collect();
        (!known.is_empty()).then(|| known[self.below(known.len())].clone())
    }

    fn literal(&mut self, of: Type) -> String {
        let number = self.below(40);
        match of {
            Type::Word => format!("{number}u32"),
            Type::Long => format!("{number}u64"),
            Type::Bool => if number.is_multiple_of(2) { "true" } else { "false" }.to_owned(),
        }
    }

    fn call(&mut self, depth: u32) -> String {
        let depth = depth.min(2).saturating_sub(1);
        let kind = KINDS[self.below(KINDS.len())];
        let Some(number) = self.callee(kind) else {
            return format!(
                "with::<{{ if true {{ 2 }} else {{ 1 }} }}>({})",
                self.expression(Type::Word, depth)
            );
        };
        let (x, y) = (self.expression(Type::Word, depth), self.expression(Type::Word, depth));
        match kind {
            Kind::Plain => format!("f{number}({x}, {y})"),
            Kind::Option => match self.below(4) {
                0 if self.kind == Kind::Option && !self.pure => format!("o{number}({x}, {y})?"),
                1 => format!("o{number}({x}, {y}).map_or(3, |x| x ^ 1)"),
                2 => format!("o{number}({x}, {y}).unwrap_or({})", self.literal(Type::Word)),
                _ => format!("(o{number}({x}, {y}).is_some() as u32)"),
            },
            Kind::Result => match self.below(3) {
                0 if self.kind == Kind::Result && !self.pure => format!("e{number}({x}, {y})?"),
                1 if self.kind == Kind::Option && !self.pure => format!("e{number}({x}, {y}).ok()?"),
                _ => format!("e{number}({x}, {y}).unwrap_or_else(|x| if x > 3 {{ x }} else {{ 1 }})"),
            },
            Kind::Borrows => format!("*r{number}(&[{x}, {y}], {})", self.literal(Type::Word)),
            Kind::Method => format!("pair({x}, {y}).m{number}({})", self.literal(Type::Word)),
            Kind::Changes => format!("pair({x}, {y}).w{number}({})", self.literal(Type::Word)),
        }
    }

    fn option(&mut self, depth: u32) -> String {
        match self.callee(Kind::Option) {
            Some(number) => {
                let depth = depth.min(2).saturating_sub(1);
                format!(
                    "o{number}({}, {})",
                    self.expression(Type::Word, depth),
                    self.expression(Type::Word, depth)
                )
            }
            None => format!("({}).checked_sub(7)", self.expression(Type::Word, depth.saturating_sub(1))),
        }
    }

    /// Returns an operand, in parentheses if necessary.
    fn operand(&mut self, of: Type, depth: u32) -> String {
        let text = self.expression(of, depth);
        let is_closed =
            text.ends_with(')') || text.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '.');
        let begins = ["if ", "match ", "loop ", "unsafe ", "{", "'", "&", "!", "return", "Pair"];
        let opens = text.matches('(').count();
        // A single call needs no parentheses: `f1(x) + 1`.
        let is_call = is_closed && opens > 0 && self.is_one_call(&text);
        if begins.iter().any(|begin| text.starts_with(begin)) || !is_closed || opens > 0 && !is_call {
            format!("({text})")
        } else {
            text
        }
    }

    /// Returns true if a text is a name with one pair of parentheses, or a chain of such calls.
    fn is_one_call(&self, text: &str) -> bool {
        let mut depth = 0;
        text.chars().all(|c| {
            match c {
                '(' | '[' | '{' => depth += 1,
                ')' | ']' | '}' => depth -= 1,
                _ => return depth > 0 || c.is_alphanumeric() || c == '_' || c == '.',
            }
            true
        })
    }

    fn condition(&mut self, depth: u32) -> String {
        match self.below(6) {
            0 => {
                let (some, name) = (self.option(depth.min(1)), self.name());
                let condition = self.operand(Type::Bool, depth.min(1));
                format!("let Some({name}) = {some} && {condition}")
            }
            1 => format!("let 0..=9 | 20 = {}", self.call(depth)),
            _ => self.expression(Type::Bool, depth),
        }
    }

    fn block(&mut self, of: Type, depth: u32) -> String {
        let before = self.scope.len();
        let statements =
            if self.pure || self.one_in(2) { String::new() } else { self.statements(depth.min(1), 1) };
        let value = self.expression(of, depth);
        self.scope.truncate(before);
        format!("{{ {statements}{value} }}")
    }

    fn expression(&mut self, of: Type, depth: u32) -> String {
        if depth == 0 {
            let variable = if self.one_in(3) { None } else { self.variable(of) };
            return variable.unwrap_or_else(|| self.literal(of));
        }
        let less = depth - 1;
        match self.below(9) {
            0 => {
                let condition = self.condition(less);
                let (then, otherwise) = (self.block(of, less), self.block(of, less));
                if self.one_in(3) {
                    let (second, third) = (self.condition(less), self.block(of, less));
                    return format!("if {condition} {then} else if {second} {third} else {otherwise}");
                }
                format!("if {condition} {then} else {otherwise}")
            }
            1 => self.choice(of, less),
            2 if !self.pure => {
                let (name, label) = (self.name(), self.name());
                let (condition, value) = (self.condition(less), self.expression(of, less));
                let last = self.expression(of, less);
                let other = self.block(of, less);
                // After `break`, a label would be parsed as its target.
                let [value, last] =
                    [value, last].map(|text| if text.starts_with('\'') { format!("({text})") } else { text });
                match self.below(4) {
                    0 => format!("'{label}: {{ if {condition} {{ break '{label} {value} }} {last} }}"),
                    1 => format!(
                        "{{ let mut {name} = 0; loop {{ {name} += 1; if {name} > 2 {{ break {value} }} }} }}"
                    ),
                    2 => format!(
                        "{{ let mut {name} = 0; '{label}: loop {{ {name} += 1; if {condition} {{ break '{label} {value} }} if {name} > 3 {{ break {last} }} }} }}"
                    ),
                    _ => format!("unsafe {other}"),
                }
            }
            3 => self.block(of, less),
            _ => match of {
                Type::Word => self.word(less),
                Type::Long => match self.below(4) {
                    0 => format!("{} as u64", self.operand(Type::Word, less)),
                    1 => format!("u64::from({})", self.expression(Type::Word, less)),
                    2 => format!("{} + {}", self.operand(of, less), self.operand(of, less)),
                    _ => format!("{} >> 3", self.operand(of, less)),
                },
                Type::Bool => self.truth(less),
            },
        }
    }

    fn word(&mut self, less: u32) -> String {
        let operators = ["+", "-", "*", "^", "&", "|"];
        match self.below(14) {
            0..=2 => self.call(less + 1),
            3..=5 => {
                let operator = operators[self.below(operators.len())];
                format!("{} {operator} {}", self.call(less), self.operand(Type::Word, less))
            }
            6 => {
                let operator = operators[self.below(operators.len())];
                format!("{} {operator} {}", self.operand(Type::Word, less), self.operand(Type::Word, less))
            }
            7 => format!("{} / ({} | 1)", self.operand(Type::Word, less), self.expression(Type::Word, less)),
            8 => format!("{} as u32", self.operand(Type::Long, less)),
            9 => format!("u32::from({})", self.expression(Type::Bool, less)),
            10 => {
                let (x, y) = (self.expression(Type::Word, less), self.expression(Type::Word, less));
                format!("[{x}, {y}, 4][({}) as usize % size()]", self.call(less))
            }
            11 => format!(
                "(|x: u32| if x > 9 {{ x }} else {{ {} }})({})",
                self.literal(Type::Word),
                self.call(less)
            ),
            12 => format!("({}, {}).1", self.expression(Type::Bool, less), self.call(less)),
            _ => format!("!{}", self.operand(Type::Word, less)),
        }
    }

    fn truth(&mut self, less: u32) -> String {
        let operators = ["<", "==", "!=", ">=", ">"];
        let operator = operators[self.below(operators.len())];
        match self.below(7) {
            0 | 1 => format!("{} {operator} {}", self.call(less), self.operand(Type::Word, less)),
            2 => format!("{} {operator} {}", self.operand(Type::Long, less), self.operand(Type::Long, less)),
            3 => format!("{} && {}", self.operand(Type::Bool, less), self.operand(Type::Bool, less)),
            4 => format!("{} || {}", self.operand(Type::Bool, less), self.operand(Type::Bool, less)),
            5 => format!("{}.is_some()", self.option(less)),
            _ => format!("!{}", self.operand(Type::Bool, less)),
        }
    }

    fn choice(&mut self, of: Type, less: u32) -> String {
        let subject =
            if self.one_in(2) { self.call(less) } else { format!("{} % 5", self.operand(Type::Word, less)) };
        let around = std::mem::replace(&mut self.pure, true);
        let guard = self.expression(Type::Bool, less.min(1));
        self.pure = around;
        let first = self.expression(of, less);
        let second = self.block(of, less);
        let third = if !self.pure && self.kind != Kind::Borrows && self.one_in(3) {
            format!("return {}", self.value(1))
        } else {
            self.expression(of, less)
        };
        let name = self.name();
        format!(
            "match {subject} {{ 0 => {first}, 1 | 2 if {guard} => {second} {name} @ 3..=9 => {third}, _ => {} }}",
            self.literal(of)
        )
    }
}
