//! A function's body: a flat list of statements.

use crate::declaration::Declaration;
use crate::instruction::Instruction;
use crate::span::Span;

/// The text between a function's braces, as statements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Body<'a> {
    /// Offset of the opening brace.
    pub open: usize,
    /// Offset of the closing brace.
    pub close: usize,
    /// All statements in text order. Only blanks lie between two statements.
    pub statements: Vec<Statement<'a>>,
}

/// A statement of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement<'a> {
    /// The statement's text, including its `;` and any comments within it.
    pub span: Span,
    /// Number of scopes `{ }` around the statement within the body. A scope contains its braces.
    pub depth: u32,
    /// The parsed content.
    pub kind: StatementKind<'a>,
}

/// Kind of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StatementKind<'a> {
    /// `name:`
    Label(Label<'a>),
    /// An instruction with its guard.
    Instruction(Instruction<'a>),
    /// A directive.
    Directive(Directive<'a>),
    /// `{`
    ScopeOpen,
    /// `}`
    ScopeClose,
    /// A comment with its `//` or `/* */`, a preprocessor line, a line of old debug data, or the string of a
    /// `.pragma` that begins with `WARPTRACE`.
    Comment(&'a str),
    /// A `;` on its own.
    Empty,
}

/// A label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Label<'a> {
    /// Name, without the colon.
    pub name: &'a str,
    /// Whether it names the following directive (such as `.branchtargets`), not a position in the code.
    pub names_directive: bool,
}

/// A directive of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Directive<'a> {
    /// `.reg`
    Registers(Declaration<'a>),
    /// `.local`, `.shared`, `.param` and the like.
    Variable(Declaration<'a>),
    /// `.loc`
    Loc(Loc<'a>),
    /// `.pragma`: the strings, without quotes.
    Pragma(Vec<&'a str>),
    /// `.branchtargets`
    BranchTargets {
        /// Labels that `brx.idx` selects from.
        labels: Vec<&'a str>,
    },
    /// `.calltargets`
    CallTargets {
        /// Functions that an indirect call may call.
        functions: Vec<&'a str>,
    },
    /// `.callprototype`
    CallPrototype,
    /// An unknown directive; `name` includes its dot.
    Other {
        /// The directive's first word.
        name: &'a str,
    },
}

/// `.loc`: the source position of the instructions that follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loc<'a> {
    /// Number of the file, defined by `.file`.
    pub file: u32,
    /// Line, from 1; 0 for code without a source line.
    pub line: u32,
    /// Column, from 1; 0 if unknown.
    pub column: u32,
    /// Label in `.debug_str` of the inlined function's name, with its offset if one follows.
    pub function_name: Option<&'a str>,
    /// File, line and column of the call that was inlined.
    pub inlined_at: Option<(u32, u32, u32)>,
}

impl<'a> Body<'a> {
    /// Returns the labels of the code, each with the index of its statement, in text order.
    pub fn labels(&self) -> impl Iterator<Item = (usize, &'a str)> {
        self.statements.iter().enumerate().filter_map(|(index, statement)| match statement.kind {
            StatementKind::Label(Label { name, names_directive: false }) => Some((index, name)),
            _ => None,
        })
    }

    /// Returns the instructions, each with the index of its statement, in text order.
    pub fn instructions(&self) -> impl Iterator<Item = (usize, &Instruction<'a>)> {
        self.statements
            .iter()
            .enumerate()
            .filter_map(|(index, statement)| statement.instruction().map(|instruction| (index, instruction)))
    }

    /// Returns the offset after the declarations at the start of the body, or after the opening brace if the
    /// body does not begin with declarations. Code inserted there runs first and may use the declared names.
    #[must_use]
    pub fn declarations_end(&self) -> usize {
        let mut end = self.open + 1;
        for statement in &self.statements {
            match statement.kind {
                StatementKind::Directive(Directive::Registers(_) | Directive::Variable(_)) => {
                    end = statement.span.end;
                }
                StatementKind::Directive(_) | StatementKind::Comment(_) | StatementKind::Empty => {}
                _ => break,
            }
        }
        end
    }

    /// Returns the index of the statement at `offset`; `None` between statements and outside the body.
    #[must_use]
    pub fn statement_at(&self, offset: usize) -> Option<usize> {
        let index = self.statements.partition_point(|statement| statement.span.end <= offset);
        self.statements.get(index)?.span.contains(offset).then_some(index)
    }
}

impl<'a> Statement<'a> {
    /// Returns the instruction if the statement is one.
    #[must_use]
    pub fn instruction(&self) -> Option<&Instruction<'a>> {
        match &self.kind {
            StatementKind::Instruction(instruction) => Some(instruction),
            _ => None,
        }
    }

    /// Returns the text of a [comment](StatementKind::Comment) if the statement is one.
    #[must_use]
    pub fn comment(&self) -> Option<&'a str> {
        match self.kind {
            StatementKind::Comment(text) => Some(text),
            _ => None,
        }
    }
}
