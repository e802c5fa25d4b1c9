//! Functions and kernels.

use crate::body::Body;
use crate::declaration::{Linkage, Param};
use crate::span::Span;

/// Kind of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FunctionKind {
    /// `.entry`: a kernel.
    Entry,
    /// `.func`: a function that device code calls.
    Func,
}

/// A kernel or function, defined or only declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function<'a> {
    /// Kernel or function.
    pub kind: FunctionKind,
    /// Linkage.
    pub linkage: Linkage,
    /// Name.
    pub name: &'a str,
    /// The name's text.
    pub name_span: Span,
    /// The whole function: from its first directive (`.visible`) to its closing brace or `;`.
    pub span: Span,
    /// Result parameters, before the name.
    pub returns: Vec<Param<'a>>,
    /// Parameters.
    pub params: Vec<Param<'a>>,
    /// The parameter list, parentheses included; `None` where the function has none.
    pub param_list: Option<Span>,
    /// Directives between the parameters and the body.
    pub directives: Vec<HeaderDirective<'a>>,
    /// The body; `None` for a prototype.
    pub body: Option<Body<'a>>,
}

/// A directive between a function's parameters and its body: `.maxntid 256, 1, 1`, `.noreturn`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeaderDirective<'a> {
    /// The directive and its values.
    pub span: Span,
    /// The name, its dot included.
    pub name: &'a str,
    /// The values, as text; empty where there are none.
    pub values: &'a str,
}

impl<'a> Function<'a> {
    /// Returns the offset of the `)` that closes the parameter list.
    #[must_use]
    pub fn params_close(&self) -> Option<usize> {
        self.param_list.map(|list| list.end - 1)
    }

    /// Returns what to insert, and where, so that `declaration` (`.param .u64 log`) becomes the last
    /// parameter: with a comma, or with parentheses, where they are needed.
    #[must_use]
    pub fn append_param(&self, declaration: &str) -> (usize, String) {
        match self.params_close() {
            None => (self.name_span.end, format!("({declaration})")),
            Some(close) => match self.params.last() {
                None => (close, declaration.to_owned()),
                Some(last) => (last.span.end, format!(", {declaration}")),
            },
        }
    }

    /// Finds a directive between parameters and body by its name, such as `.maxntid`.
    #[must_use]
    pub fn directive(&self, name: &str) -> Option<&HeaderDirective<'a>> {
        self.directives.iter().find(|directive| directive.name == name)
    }
}
