//! Which functions call which.

use std::collections::{BTreeSet, HashMap};

use crate::module::{ItemKind, Module};

/// What one function calls.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Calls<'a> {
    /// Indices in [`Module::functions`] of the functions called by name; the definition where there is one.
    pub direct: BTreeSet<usize>,
    /// Names called that the module neither defines nor declares.
    pub unknown: BTreeSet<&'a str>,
    /// Whether there is a call through a register.
    pub indirect: bool,
}

/// What each function of a module calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallGraph<'a> {
    calls: Vec<Calls<'a>>,
}

/// Returns what each function of `module` calls. A call of an alias is a call of what it names.
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

/// Returns the function of each name: the definition, else the first prototype.
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
    /// Returns what a function calls.
    ///
    /// # Panics
    ///
    /// If the module has no function of that index.
    #[must_use]
    pub fn calls(&self, function: usize) -> &Calls<'a> {
        &self.calls[function]
    }

    /// Returns the functions that calls by name reach from `function`, itself included only if it is called
    /// again.
    ///
    /// # Panics
    ///
    /// If the module has no function of that index.
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
