//! A module: header, declarations and functions.

use crate::declaration::{Declaration, Linkage, Space};
use crate::error::ParseError;
use crate::function::Function;
use crate::parse;
use crate::span::{Position, Span};

/// A parsed PTX module. Holds spans and names of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Module<'a> {
    /// The parsed text. All spans are offsets into it.
    pub text: &'a str,
    /// Functions with and without a body, in text order. A name may have prototypes and one definition.
    pub functions: Vec<Function<'a>>,
    /// All items of module scope, in text order. Only blanks lie between two items.
    pub items: Vec<Item<'a>>,
    /// Offset where module-scope declarations may be inserted: after the line of the last of `.version`,
    /// `.target` and `.address_size`, or directly after that directive if its line holds more. Begin the
    /// inserted text with a line end, because the text may end here without one.
    pub header_end: usize,
    pub(crate) version: (u32, u32),
    pub(crate) targets: Vec<&'a str>,
    pub(crate) address_size: Option<u32>,
}

/// An item of module scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item<'a> {
    /// The item's text.
    pub span: Span,
    /// The parsed content.
    pub kind: ItemKind<'a>,
}

/// Kind of an item of module scope.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ItemKind<'a> {
    /// `.version`
    Version,
    /// `.target`
    Target,
    /// `.address_size`
    AddressSize,
    /// A function: its index in [`Module::functions`].
    Function(usize),
    /// Variables.
    Variable(Declaration<'a>),
    /// `.file`: assigns a number to a source file, which `.loc` uses.
    File {
        /// The file's number.
        index: u32,
        /// The text between the quotes, with escapes.
        name: &'a str,
    },
    /// `.section`, debug data in braces.
    Section {
        /// The section's name with its dot.
        name: &'a str,
    },
    /// `.alias`, a second name for a function.
    Alias {
        /// The new name.
        name: &'a str,
        /// The function that the alias refers to.
        target: &'a str,
    },
    /// `.pragma`
    Pragma,
    /// A label, as in debug data between sections.
    Label {
        /// Name, without the colon.
        name: &'a str,
    },
    /// A comment, a preprocessor line or a line of old debug data.
    Comment,
    /// An unknown directive; `name` includes its dot.
    Other {
        /// The item's first word, such as `.visible`.
        name: &'a str,
    },
}

impl<'a> Module<'a> {
    /// Parses a module in time linear in the text's length. Unknown directives and instructions are accepted.
    ///
    /// # Errors
    /// Returns a [`ParseError`] if the text does not begin with `.version` and `.target`, or if a bracket,
    /// string or comment is not closed or a statement is malformed.
    pub fn parse(text: &'a str) -> Result<Self, ParseError> {
        parse::module(text)
    }

    /// Returns the major and minor PTX version.
    #[must_use]
    pub fn version(&self) -> (u32, u32) {
        self.version
    }

    /// Returns the architecture, such as `sm_70`: the first word of `.target`.
    #[must_use]
    pub fn target(&self) -> &'a str {
        self.targets.first().copied().unwrap_or_default()
    }

    /// Returns all words of `.target`: the architecture, then options such as `debug`.
    #[must_use]
    pub fn targets(&self) -> &[&'a str] {
        &self.targets
    }

    /// Returns the address size in bits, if `.address_size` gives it.
    #[must_use]
    pub fn address_size(&self) -> Option<u32> {
        self.address_size
    }

    /// Returns the function called `name`, preferring a definition to a prototype.
    #[must_use]
    pub fn function(&self, name: &str) -> Option<&Function<'a>> {
        let mut named = self.functions.iter().filter(|function| function.name == name);
        let first = named.clone().next();
        named.find(|function| function.body.is_some()).or(first)
    }

    /// Returns the functions and kernels with a body, in text order.
    pub fn definitions(&self) -> impl Iterator<Item = &Function<'a>> {
        self.functions.iter().filter(|function| function.body.is_some())
    }

    /// Returns the variable declarations of module scope with their spans.
    pub fn variables(&self) -> impl Iterator<Item = (Span, &Declaration<'a>)> {
        self.items.iter().filter_map(|item| match &item.kind {
            ItemKind::Variable(declaration) => Some((item.span, declaration)),
            _ => None,
        })
    }

    /// Returns the names of the `.extern .shared` arrays of module scope: a launch's dynamic shared memory.
    pub fn dynamic_shared(&self) -> impl Iterator<Item = &'a str> {
        self.variables()
            .filter(|(_, declaration)| {
                declaration.space == Space::Shared && declaration.linkage == Linkage::Extern
            })
            .flat_map(|(_, declaration)| declaration.names.iter().map(|declared| declared.name))
    }

    /// Returns the name of the source file with the number `index`, with escapes.
    #[must_use]
    pub fn file(&self, index: u32) -> Option<&'a str> {
        self.items.iter().find_map(|item| match item.kind {
            ItemKind::File { index: number, name } if number == index => Some(name),
            _ => None,
        })
    }

    /// Returns the line and column of an offset.
    #[must_use]
    pub fn position(&self, offset: usize) -> Position {
        Position::new(self.text, offset)
    }
}
