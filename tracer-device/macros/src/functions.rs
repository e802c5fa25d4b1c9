//! The functions of a module, and which of them record events.

use syn::{Attribute, Block, ImplItem, Item, ItemMod, Signature, Type};

use crate::decisions::{Noisy, Traced, has, in_statements};

pub(crate) struct Function<'a> {
    /// Name in the table: `draw`, or `Walk::draw` for a method.
    pub(crate) name: String,
    pub(crate) attributes: &'a mut Vec<Attribute>,
    pub(crate) signature: &'a Signature,
    pub(crate) block: &'a mut Block,
}

impl Function<'_> {
    /// Returns which parts of the function are traced, in a module that traces `traced`.
    pub(crate) fn traced(&self, traced: Traced) -> Traced {
        let is_left_out = traced == Traced::Decisions && has(self.attributes, "untraced");
        if self.signature.constness.is_some() || self.signature.asyncness.is_some() || is_left_out {
            return Traced::Nothing;
        }
        traced
    }
}

pub(crate) fn list(items: &mut [Item]) -> Vec<Function<'_>> {
    let mut functions = Vec::new();
    for item in items {
        match item {
            Item::Fn(function) => functions.push(Function {
                name: function.sig.ident.to_string(),
                attributes: &mut function.attrs,
                signature: &function.sig,
                block: &mut function.block,
            }),
            Item::Impl(block) => {
                let owner = match &*block.self_ty {
                    Type::Path(path) => path.path.segments.last().map(|segment| segment.ident.to_string()),
                    _ => None,
                };
                for item in &mut block.items {
                    let ImplItem::Fn(method) = item else { continue };
                    let own = &method.sig.ident;
                    functions.push(Function {
                        name: owner.as_ref().map_or(own.to_string(), |owner| format!("{owner}::{own}")),
                        attributes: &mut method.attrs,
                        signature: &method.sig,
                        block: &mut method.block,
                    });
                }
            }
            _ => {}
        }
    }
    functions
}

/// Returns the names of the functions that record events when called: they contain something that is
/// `traced`, or call such a function. `known` lists such functions of other modules. Names are compared
/// without paths, so a function may be confused with another of the same name.
pub(crate) fn noisy(functions: &[Function<'_>], known: &Noisy, traced: Traced) -> Noisy {
    let mut noisy = known.clone();
    loop {
        let before = noisy.len();
        for function in functions {
            if in_statements(&function.block.stmts, &noisy, function.traced(traced)) {
                noisy.insert(function.signature.ident.to_string());
            }
        }
        if noisy.len() == before {
            return noisy;
        }
    }
}

pub(crate) fn is_kernels(attributes: &[Attribute]) -> bool {
    let is_it = |last: &syn::PathSegment| last.ident == "kernels";
    attributes.iter().any(|attribute| attribute.path().segments.last().is_some_and(is_it))
}

/// Returns the modules with `#[kernels]` in a file, in source order.
pub(crate) fn modules(items: &[Item]) -> Vec<&ItemMod> {
    let modules = items.iter().filter_map(|item| match item {
        Item::Mod(module) => Some(module),
        _ => None,
    });
    modules
        .flat_map(|module| match &module.content {
            _ if is_kernels(&module.attrs) => vec![module],
            Some((_, items)) => self::modules(items),
            None => Vec::new(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_spreads_to_callers() {
        let mut file: syn::File = syn::parse_str(
            "fn last() { middle() } fn middle() { first(1) } fn first(x: u32) { if x > 1 {} }
             fn quiet() { sum() } fn sum() {} #[untraced] fn silent() { if x {} }
             #[untraced] fn passes_on() { if x { first(2) } }
             impl Walk { fn step(&self) { while x {} } } fn walks(walk: Walk) { walk.step() }",
        )
        .unwrap();
        let functions = list(&mut file.items);
        let mut noisy: Vec<_> = noisy(&functions, &Noisy::new(), Traced::Decisions).into_iter().collect();
        noisy.sort();
        assert_eq!(noisy, ["first", "last", "middle", "passes_on", "step", "walks"]);
        assert!(functions.iter().any(|function| function.name == "Walk::step"));
    }
}
