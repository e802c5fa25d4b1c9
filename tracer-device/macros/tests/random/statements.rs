//! Random statements.

use super::{Kind, Type, Variable, Writer};

impl Writer {
    pub(super) fn statements(&mut self, depth: u32, most: usize) -> String {
        let count = 1 + self.below(most);
        (0..count).map(|_| self.statement(depth) + "\n").collect()
    }

    pub(super) fn body(&mut self, depth: u32) -> String {
        let before = self.scope.len();
        let statements = self.statements(depth, 2);
        self.scope.truncate(before);
        format!("{{\n{statements}}}")
    }

    fn declare(&mut self, of: Type, mutable: bool) -> String {
        let name = self.name();
        self.scope.push(Variable { name: name.clone(), of, mutable });
        name
    }

    fn statement(&mut self, depth: u32) -> String {
        let types = [Type::Word, Type::Word, Type::Long, Type::Bool];
        let of = types[self.below(types.len())];
        let less = depth.saturating_sub(1);
        match self.below(if depth == 0 { 9 } else { 22 }) {
            0 | 1 => {
                let value = self.expression(of, depth);
                let mutable = self.one_in(2);
                format!("let {}{} = {value};", if mutable { "mut " } else { "" }, self.declare(of, mutable))
            }
            2 => format!("{};", self.call(depth + 1)),
            3 => format!("#[allow(unused)] {};", self.call_alone()),
            4 => {
                let value = self.expression(of, depth);
                let known: Vec<String> = self
                    .scope
                    .iter()
                    .filter(|found| found.of == of && found.mutable)
                    .map(|found| found.name.clone())
                    .collect();
                if known.is_empty() {
                    return format!("_ = {value};");
                }
                format!("{} = {value};", known[self.below(known.len())])
            }
            5 => {
                let value = self.call(depth);
                let name = self.declare(Type::Word, false);
                // The temporary lives as long as the reference.
                let value = if value.starts_with('*') { format!("{value} + 1") } else { value };
                format!("let {name} = &({value});\nlet {name} = *{name};")
            }
            6 => {
                let (some, leaves) = (self.option(depth), self.leaves(1));
                let name = self.declare(Type::Word, false);
                format!("let Some({name}) = {some} else {{ {leaves} }};")
            }
            7 => {
                let (x, y) = (self.expression(Type::Word, depth), self.call(depth));
                let (first, second) = (self.declare(Type::Word, false), self.declare(Type::Word, true));
                format!("let ({first}, mut {second}) = ({x}, {y});")
            }
            8 => {
                let value = self.call(depth);
                let name = self.declare(Type::Word, true);
                format!("let mut {name} = 1u32;\n*(&mut {name}) += {value};")
            }
            9 | 10 => format!("if {} {}", self.condition(less), self.body(less)),
            11 => {
                let (condition, then, second) = (self.condition(less), self.body(less), self.condition(less));
                let (third, last) = (self.body(less), self.body(less));
                format!("#[allow(unused)]\nif {condition} {then} else if {second} {third} else {last}")
            }
            12 => {
                let (condition, leaves) = (self.condition(less), self.leaves(less));
                format!("if {condition} {{ {leaves} }}")
            }
            13 | 14 => self.repeats(less),
            15 => {
                let (subject, first) = (self.expression(Type::Word, less), self.body(less));
                let (second, call) = (self.leaves(0), self.call(less));
                format!(
                    "match ({subject}) % 6 {{ 0 => {first} 1 | 2 => {{ {call}; }} 3 => {{ {second} }} _ => () }}"
                )
            }
            16 => format!("#[cfg(any())]\nif {} {}", self.condition(less), self.body(less)),
            17 => format!("#[cfg(any())]\nlet Some(absent) = None::<u32> else {{ {} }};", self.leaves(0)),
            18 => {
                let value = self.call(less);
                let name = self.declare(Type::Word, false);
                format!(
                    "let {name}: [u32; if size() > 2 {{ 2 }} else {{ 1 }}] = [{value}; {{ if true {{ 2 }} else {{ 3 }} }}];\nlet {name} = {name}[1];"
                )
            }
            19 => self.body(less),
            20 => {
                let value = self.call(less);
                let name = self.declare(Type::Word, false);
                let add = self.variable(Type::Word).unwrap_or_default();
                format!(
                    "let {name} = {value};\nlet {name} = (move |x: u32| {{ let mut n = x; while n > 3 {{ n /= 2 }} n ^ {name} }})({add});"
                )
            }
            _ => {
                let (x, y) = (self.call(less), self.expression(Type::Word, less));
                let (first, second) = (self.declare(Type::Word, false), self.declare(Type::Word, false));
                format!("let Pair {{ a: {first}, b: {second} }} = Pair {{ b: {x}, a: {y} }};")
            }
        }
    }

    /// Returns a call that can have an attribute.
    fn call_alone(&mut self) -> String {
        match self.callee(Kind::Plain) {
            Some(number) => format!("f{number}({}, {})", self.literal(Type::Word), self.literal(Type::Word)),
            None => "size()".to_owned(),
        }
    }

    /// Returns a statement that leaves the block.
    fn leaves(&mut self, depth: u32) -> String {
        let inner = self.loops.len();
        match self.below(3) {
            0 if inner > 0 => {
                let label = self.below(inner);
                format!("continue '{};", self.loops[label])
            }
            1 if inner > 0 => {
                let number = self.below(inner);
                let label = self.loops[number].clone();
                format!("break '{label}")
            }
            2 => format!("#[allow(unused)]\nreturn {};", self.value(depth)),
            _ => format!("return {}", self.value(depth)),
        }
    }

    fn repeats(&mut self, depth: u32) -> String {
        let (name, label) = (self.name(), format!("l{}", self.names));
        let condition = self.expression(Type::Bool, depth.min(1));
        let before = self.scope.len();
        let value = self.call(depth);
        self.loops.push(label.clone());
        let plain = self.one_in(3);
        let way = self.below(6);
        if matches!(way, 2..=4) {
            self.scope.push(Variable { name: name.clone(), of: Type::Word, mutable: false });
        }
        let body =
            if plain { format!("_ = {};", self.literal(Type::Word)) } else { self.statements(depth, 2) };
        self.loops.pop();
        self.scope.truncate(before);
        match way {
            0 => format!("let mut {name} = 0;\n'{label}: while {name} < 3 {{ {name} += 1;\n{body}}}"),
            1 => format!(
                "let mut {name} = 0;\n#[allow(unused)]\n'{label}: while {name} < 2 && ({condition}) {{ {name} += 1;\n{body}}}"
            ),
            2 => format!("'{label}: for {name} in 0..({value}) % 4 {{\n{body}}}"),
            3 => format!("'{label}: for &{name} in &[{value}, 7] {{\n{body}}}"),
            4 => format!(
                "'{label}: for {name} in [{value}, 2].iter().map(|x| if *x > 3 {{ 3 }} else {{ *x }}) {{\n{body}}}"
            ),
            _ => format!(
                "let mut {name} = 0;\n'{label}: loop {{ {name} += 1;\nif {name} > 3 {{ break }}\n{body}}}"
            ),
        }
    }
}
