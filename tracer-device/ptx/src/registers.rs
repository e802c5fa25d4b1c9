//! Register declarations of a body, resolved by name and scope.

use std::collections::HashMap;
use std::ops::Range;

use crate::{Body, Directive, StatementKind};

pub(crate) struct Registers<'a> {
    /// By name. For `%r<4>`, by the part before `<`.
    registers: HashMap<&'a str, Vec<Register<'a>>>,
}

struct Register<'a> {
    /// N of `name<N>`.
    count: Option<u32>,
    ty: &'a str,
    /// The statements in its scope, from the declaration on.
    seen: Range<usize>,
}

impl<'a> Registers<'a> {
    pub(crate) fn new(body: &Body<'a>) -> Self {
        let mut registers: HashMap<&'a str, Vec<Register<'a>>> = HashMap::new();
        // For each open scope, the declarations that end with it.
        let mut scopes: Vec<Vec<(&'a str, usize)>> = vec![Vec::new()];
        for (index, statement) in body.statements.iter().enumerate() {
            match &statement.kind {
                StatementKind::ScopeOpen => scopes.push(Vec::new()),
                StatementKind::ScopeClose if scopes.len() > 1 => {
                    for (name, number) in scopes.pop().into_iter().flatten() {
                        if let Some(register) = registers.get_mut(name).and_then(|all| all.get_mut(number)) {
                            register.seen.end = index;
                        }
                    }
                }
                StatementKind::Directive(Directive::Registers(declaration)) => {
                    for declared in &declaration.names {
                        let all = registers.entry(declared.name).or_default();
                        if let Some(scope) = scopes.last_mut() {
                            scope.push((declared.name, all.len()));
                        }
                        let seen = index..body.statements.len();
                        all.push(Register { count: declared.count, ty: declaration.ty, seen });
                    }
                }
                _ => {}
            }
        }
        Self { registers }
    }

    /// Returns the type, with its dot, of the register that `name` means at a statement, if it is one.
    pub(crate) fn register(&self, name: &str, statement: usize) -> Option<&'a str> {
        self.declared(name, statement).map(|(_, ty)| ty)
    }

    /// Returns the declaring statement and the type of the register that `name` refers to at a statement.
    pub(crate) fn declared(&self, name: &str, statement: usize) -> Option<(usize, &'a str)> {
        let ways = numbered(name).map(|(name, number)| (name, Some(number))).chain([(name, None)]);
        let seen = ways.flat_map(|(name, number)| {
            let is_meant = move |register: &&Register<'a>| match (register.count, number) {
                (None, None) => true,
                (Some(count), Some(number)) => number < count,
                _ => false,
            };
            let all = self.registers.get(name).into_iter().flatten();
            all.filter(is_meant).filter(|register| register.seen.contains(&statement))
        });
        // The declaration in the innermost scope comes last.
        seen.max_by_key(|register| register.seen.start).map(|register| (register.seen.start, register.ty))
    }
}

/// Splits a name into base and number in all ways: `%r12` is number 12 of `%r<N>` and number 2 of `%r1<N>`.
pub(crate) fn numbered(name: &str) -> impl Iterator<Item = (&str, u32)> {
    let digits = name.trim_end_matches(|digit: char| digit.is_ascii_digit()).len();
    (digits..name.len()).filter_map(|end| Some((&name[..end], name[end..].parse().ok()?)))
}

/// Returns the size of a register type in bits, 1 for a predicate.
pub(crate) fn bits(ty: &str) -> Option<u32> {
    match ty.trim_start_matches('.') {
        "pred" => Some(1),
        ty => ty.trim_start_matches(|kind: char| kind.is_ascii_alphabetic()).parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Module;

    #[test]
    fn names_mean_what_the_innermost_scope_declares() {
        let text = ".version 8.0\n.target sm_90\n.entry k() {
            .reg .b64 %rd<3>; .reg .pred p; .reg .b32 %r1<4>;
            { .reg .b32 %rd<2>; bra L; }
            L: ret; }";
        let module = Module::parse(text).expect("it is PTX");
        let body = module.functions[0].body.as_ref().expect("it has a body");
        let declared = Registers::new(body);
        let at: Vec<usize> = body.instructions().map(|(index, _)| index).collect();
        let types = |at: usize| {
            ["%rd1", "%rd2", "%rd3", "p", "%r12", "%r1", "%r14"].map(|name| declared.register(name, at))
        };
        let outside = [Some(".b64"), Some(".b64"), None, Some(".pred"), Some(".b32"), None, None];
        assert_eq!(types(at[1]), outside);
        let mut inside = outside;
        inside[0] = Some(".b32");
        assert_eq!(types(at[0]), inside);
        assert_eq!(
            [".b64", ".pred", ".f16x2", ".s8", "."].map(bits),
            [Some(64), Some(1), None, Some(8), None]
        );
    }
}
