//! Functions and kernels.

use crate::body::Body;
use crate::declaration::{Linkage, Param};
use crate::span::Span;

/// Kind of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FunctionKind {
    /// `.entry`: a kernel.
    Entry,
    /// `.func`: a device function.
    Func,
}

/// A kernel or function: a definition or a prototype.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function<'a> {
    /// Kernel or function.
    pub kind: FunctionKind,
    /// Linkage.
    pub linkage: Linkage,
    /// Name.
    pub name: &'a str,
    /// Span of the name.
    pub name_span: Span,
    /// The whole function, from its first directive (`.visible`) to its closing brace or `;`.
    pub span: Span,
    /// Result parameters.
    pub returns: Vec<Param<'a>>,
    /// Parameters.
    pub params: Vec<Param<'a>>,
    /// Span of the parameter list with its parentheses; `None` if the function has no list.
    pub param_list: Option<Span>,
    /// Directives between the parameters and the body.
    pub directives: Vec<HeaderDirective<'a>>,
    /// The body; `None` for a prototype.
    pub body: Option<Body<'a>>,
}

/// A directive between a function's parameters and its body: `.maxntid 256, 1, 1`, `.noreturn`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeaderDirective<'a> {
    /// The directive with its values.
    pub span: Span,
    /// The name with its dot.
    pub name: &'a str,
    /// The values as text; may be empty.
    pub values: &'a str,
}

impl<'a> Function<'a> {
    /// Returns the offset of the `)` that closes the parameter list.
    #[must_use]
    pub fn params_close(&self) -> Option<usize> {
        self.param_list.map(|list| list.end - 1)
    }

    /// Returns the offset and the text of the insertion that makes `declaration` (`.param .u64 log`) the last
    /// parameter. The text includes a comma or parentheses where needed.
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

    /// Returns the directive between parameters and body with the given name, such as `.maxntid`.
    #[must_use]
    pub fn directive(&self, name: &str) -> Option<&HeaderDirective<'a>> {
        self.directives.iter().find(|directive| directive.name == name)
    }
}
