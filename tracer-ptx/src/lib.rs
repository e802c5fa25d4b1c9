//! Reads PTX text and lets others edit it by span.
#![forbid(unsafe_code)]

mod body;
mod calls;
mod cfg;
mod declaration;
mod edits;
mod error;
mod function;
pub mod fuzzing;
mod instruction;
mod lexer;
mod module;
mod parse;
mod span;

pub use body::{Body, Directive, Label, Loc, Statement, StatementKind};
pub use calls::{CallGraph, Calls, call_graph};
pub use cfg::{Block, Cfg, CfgError, Edge, EdgeKind, Loop, Terminator};
pub use declaration::{Declaration, Declared, Linkage, Param, Space};
pub use edits::{EditError, Edits};
pub use error::ParseError;
pub use function::{Function, FunctionKind, HeaderDirective};
pub use instruction::{Guard, Instruction, Operand};
pub use module::{Item, ItemKind, Module};
pub use span::{Position, Span};
