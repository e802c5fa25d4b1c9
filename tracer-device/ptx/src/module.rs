//! A module: its header, its declarations, its functions.

use crate::declaration::{Declaration, Linkage, Space};
use crate::error::ParseError;
use crate::function::Function;
use crate::parse;
use crate::span::{Position, Span};

/// One PTX module, as spans and names of the text it was read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Module<'a> {
    /// The text that was parsed: all spans are offsets into it.
    pub text: &'a str,
    /// Functions with and without a body, in text order. One name may stand here as prototypes and once
    /// defined.
    pub functions: Vec<Function<'a>>,
    /// Everything at module scope, in text order. Between two items the text holds blanks only.
    pub items: Vec<Item<'a>>,
    /// Where module-scope declarations may be inserted: right behind the line of the last of `.version`,
    /// `.target` and `.address_size`, or behind the directive where its line holds more. Begin what is
    /// inserted with a line end: the text may end here without one.
    pub header_end: usize,
    pub(crate) version: (u32, u32),
    pub(crate) targets: Vec<&'a str>,
    pub(crate) address_size: Option<u32>,
}

/// Something at module scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item<'a> {
    /// The item's text.
    pub span: Span,
    /// What it is.
    pub kind: ItemKind<'a>,
}

/// What stands at module scope.
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
    /// Variables of module scope.
    Variable(Declaration<'a>),
    /// `.file`, which gives a source file the number that `.loc` names.
    File {
        /// The file's number.
        index: u32,
        /// The text between the quotes, escapes kept.
        name: &'a str,
    },
    /// `.section`, debug data in braces.
    Section {
        /// The section's name, its dot included.
        name: &'a str,
    },
    /// `.alias`, a second name for a function.
    Alias {
        /// The new name.
        name: &'a str,
        /// The function that it names.
        target: &'a str,
    },
    /// `.pragma`
    Pragma,
    /// A label, which debug data has between sections.
    Label {
        /// Name, without the colon.
        name: &'a str,
    },
    /// A comment, or a line of the preprocessor or of old debug data.
    Comment,
    /// A directive that this version does not know; `name` includes its dot.
    Other {
        /// The directive's first word, such as `.visible`.
        name: &'a str,
    },
}

impl<'a> Module<'a> {
    /// Reads a module. Unknown directives and instructions pass; takes time linear in the text's length.
    ///
    /// # Errors
    ///
    /// [`ParseError`] where the text does not begin with `.version` and `.target`, or something is not
    /// closed.
    pub fn parse(text: &'a str) -> Result<Self, ParseError> {
        parse::module(text)
    }

    /// Returns the PTX version, major and minor.
    #[must_use]
    pub fn version(&self) -> (u32, u32) {
        self.version
    }

    /// Returns the architecture, such as `sm_70`: the first word of `.target`.
    #[must_use]
    pub fn target(&self) -> &'a str {
        self.targets.first().copied().unwrap_or_default()
    }

    /// Returns all words of `.target`: the architecture and options such as `debug`.
    #[must_use]
    pub fn targets(&self) -> &[&'a str] {
        &self.targets
    }

    /// Returns the size of an address in bits, where `.address_size` states it.
    #[must_use]
    pub fn address_size(&self) -> Option<u32> {
        self.address_size
    }

    /// Finds the function called `name`; one with a body before a prototype.
    #[must_use]
    pub fn function(&self, name: &str) -> Option<&Function<'a>> {
        let mut named = self.functions.iter().filter(|function| function.name == name);
        let first = named.clone().next();
        named.find(|function| function.body.is_some()).or(first)
    }

    /// Returns the kernels and other functions that have a body, in text order.
    pub fn definitions(&self) -> impl Iterator<Item = &Function<'a>> {
        self.functions.iter().filter(|function| function.body.is_some())
    }

    /// Returns the variable declarations of module scope, with the span of each.
    pub fn variables(&self) -> impl Iterator<Item = (Span, &Declaration<'a>)> {
        self.items.iter().filter_map(|item| match &item.kind {
            ItemKind::Variable(declaration) => Some((item.span, declaration)),
            _ => None,
        })
    }

    /// Returns the names of the `.extern .shared` arrays of module scope: they name a launch's dynamic shared
    /// memory.
    pub fn dynamic_shared(&self) -> impl Iterator<Item = &'a str> {
        self.variables()
            .filter(|(_, declaration)| {
                declaration.space == Space::Shared && declaration.linkage == Linkage::Extern
            })
            .flat_map(|(_, declaration)| declaration.names.iter().map(|declared| declared.name))
    }

    /// Finds the name of the source file that `.loc` calls `index`, escapes kept.
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
