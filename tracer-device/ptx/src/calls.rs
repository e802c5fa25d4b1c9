//! Call graph of a module.

use std::collections::{BTreeSet, HashMap};

use crate::module::{ItemKind, Module};

/// Calls of one function.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Calls<'a> {
    /// Indices in [`Module::functions`] of functions called by name; definitions rather than prototypes.
    pub direct: BTreeSet<usize>,
    /// Called names that the module neither defines nor declares.
    pub unknown: BTreeSet<&'a str>,
    /// Whether the function calls through a register.
    pub indirect: bool,
}

/// Calls of each function of a module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallGraph<'a> {
    calls: Vec<Calls<'a>>,
}

/// Returns the calls of each function of `module`. A call of an alias counts as a call of its target.
#[must_use]
pub fn call_graph<'a>(module: &Module<'a>) -> CallGraph<'a> {
    let indices = indices(module);
    let calls = module.functions.iter().map(|function| {
        let mut calls = Calls::default();
        for (_, instruction) in function.body.iter().flat_map(|body| body.instructions()) {
            calls.indirect |= instruction.is_indirect_call();
            match instruction.callee().map(|name| (name, indices.get(name))) {
                None => {}
                Some((_, Some(index))) => {
                    calls.direct.insert(*index);
                }
                Some((name, None)) => {
                    calls.unknown.insert(name);
                }
            }
        }
        calls
    });
    CallGraph { calls: calls.collect() }
}

/// Maps each function name to its index in [`Module::functions`]: the definition, otherwise the first
/// prototype. An alias has the index of its target and replaces a prototype of the same name.
fn indices<'a>(module: &Module<'a>) -> HashMap<&'a str, usize> {
    let mut indices: HashMap<&str, usize> = HashMap::new();
    for (index, function) in module.functions.iter().enumerate() {
        let known = indices.entry(function.name).or_insert(index);
        if function.body.is_some() {
            *known = index;
        }
    }
    for item in &module.items {
        if let ItemKind::Alias { name, target } = item.kind
            && let Some(index) = indices.get(target).copied()
        {
            indices.insert(name, index);
        }
    }
    indices
}

impl<'a> CallGraph<'a> {
    /// Returns the calls of a function. Panics if `function` is not an index in [`Module::functions`].
    #[must_use]
    pub fn calls(&self, function: usize) -> &Calls<'a> {
        &self.calls[function]
    }

    /// Returns the functions that `function` reaches by direct calls; includes itself only through a cycle of
    /// calls. Panics if `function` is not an index in [`Module::functions`].
    #[must_use]
    pub fn reachable(&self, function: usize) -> BTreeSet<usize> {
        let mut reached = BTreeSet::new();
        let mut work = vec![function];
        while let Some(caller) = work.pop() {
            work.extend(self.calls[caller].direct.iter().copied().filter(|callee| reached.insert(*callee)));
        }
        reached
    }
}
