//! Extracts kernels and their callees from a module.

use std::collections::{BTreeSet, HashMap};

use crate::{EditError, Edits, Function, ItemKind, Module, Space};

/// Reasons why a kernel cannot leave its module.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Bound {
    /// Code uses a variable of the module. A copy of the module would have another instance of it.
    #[error("its module has the variable `{0}`")]
    Variable(String),
    /// A function has an alias.
    #[error("its module has a second name for a function, `{0}`")]
    Alias(String),
}

/// Checks that the kernels of a module compute the same in another module: the module has no aliases,
/// and its code uses no module-scope variables except shared ones, which each block has separately.
///
/// # Errors
/// Returns the first alias or variable found.
pub fn stands_alone(module: &Module<'_>) -> Result<(), Bound> {
    for item in &module.items {
        if let ItemKind::Alias { name, .. } = item.kind {
            return Err(Bound::Alias(name.to_owned()));
        }
    }
    let names: BTreeSet<&str> = module
        .variables()
        .filter(|(_, declaration)| declaration.space != Space::Shared)
        .flat_map(|(_, declaration)| declaration.names.iter().map(|declared| declared.name))
        .collect();
    if names.is_empty() {
        return Ok(());
    }
    let used = module.definitions().flat_map(|function| named_by(function)).find(|name| names.contains(name));
    used.map_or(Ok(()), |name| Err(Bound::Variable(name.to_owned())))
}

/// Returns the module's text with only the given functions and all that they name, directly or not. Each
/// removed function leaves as many empty lines as it had, so line numbers stay the same. Never fails for a
/// module from [`Module::parse`].
pub fn only(module: &Module<'_>, functions: &[&str]) -> Result<String, EditError> {
    let by_name: HashMap<&str, &Function<'_>> =
        module.definitions().map(|function| (function.name, function)).collect();
    let mut work: Vec<&Function<'_>> =
        functions.iter().filter_map(|name| by_name.get(name).copied()).collect();
    let mut kept: BTreeSet<&str> = work.iter().map(|function| function.name).collect();
    while let Some(function) = work.pop() {
        for name in named_by(function) {
            if let Some(named) = by_name.get(name)
                && kept.insert(named.name)
            {
                work.push(named);
            }
        }
    }
    let mut edits = Edits::new();
    for function in module.definitions().filter(|function| !kept.contains(function.name)) {
        let lines = function.span.text(module.text).bytes().filter(|byte| *byte == b'\n').count();
        edits.replace(function.span, "\n".repeat(lines));
    }
    edits.apply(module.text)
}

/// Returns the words in the operands of a function's instructions.
fn named_by<'a>(function: &'a Function<'a>) -> impl Iterator<Item = &'a str> {
    let operands = function.body.iter().flat_map(|body| body.instructions()).flat_map(|(_, it)| &it.operands);
    let is_word = |char: char| char.is_ascii_alphanumeric() || "_$%".contains(char);
    operands.flat_map(move |operand| operand.text.split(move |char| !is_word(char)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "
.version 7.8
.target sm_80
.address_size 64
.global .align 4 .u32 unused;
.extern .shared .align 4 .b8 block[];
.func (.param .u32 r) helper(.param .u32 a) {
    ret;
}
.visible .entry one() {
    .reg .b32 %r<3>;
    mov.u32 %r1, block;
    call (%r1), helper, (%r2);
    ret;
}
.visible .entry two() {
    ret;
}
";

    #[test]
    fn a_kernel_comes_with_what_it_calls_and_keeps_its_lines() {
        let module = Module::parse(TEXT).expect("it is PTX");
        assert_eq!(stands_alone(&module), Ok(()));
        let one = only(&module, &["one"]).expect("spans do not overlap");
        assert!(one.contains("entry one") && one.contains("helper(") && !one.contains("entry two"));
        let two = only(&module, &["two"]).expect("spans do not overlap");
        assert!(two.contains("entry two") && !two.contains("helper"));
        let line = |text: &str, of: &str| text.lines().position(|line| line.contains(of));
        assert_eq!(line(&two, "entry two"), line(TEXT, "entry two"));
        assert_eq!(two.lines().count(), TEXT.lines().count());
    }

    #[test]
    fn variables_that_code_uses_bind_a_kernel_to_its_module() {
        for used in ["mov.u64 %rd1, unused;", "ld.global.u32 %r1, [unused+4];"] {
            let text = TEXT.replace("mov.u32 %r1, block;", used);
            let module = Module::parse(&text).expect("it is PTX");
            assert_eq!(stands_alone(&module), Err(Bound::Variable("unused".to_owned())), "{used}");
        }
    }
}
