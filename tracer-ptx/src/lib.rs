//! Reads PTX text and lets others edit it by span.
#![forbid(unsafe_code)]

mod body;
mod declaration;
mod edits;
mod error;
mod function;
mod instruction;
#[cfg(feature = "interpreter")]
pub mod interpret;
mod lexer;
mod module;
mod parse;
mod span;
pub mod splice;

pub use body::{Body, Directive, Label, Loc, Statement, StatementKind};
pub use declaration::{Declaration, Declared, Linkage, Param, Space};
pub use edits::{EditError, Edits};
pub use error::ParseError;
pub use function::{Function, FunctionKind, HeaderDirective};
pub use instruction::{Guard, Instruction, Operand};
pub use module::{Item, ItemKind, Module};
pub use span::{Position, Span};
