//! Reads PTX, the assembly text that compilers hand to NVIDIA's driver, and edits it by span.
//!
//! It is for tools that insert code into what a compiler has optimised, whichever compiler that was. It knows
//! what such a tool needs (functions, parameters, scopes, labels, branches, calls, `.loc`, comments) and
//! carries everything else through byte for byte: an instruction or directive of a later PTX version passes.
//! Any UTF-8 text gives a [`Module`] or a [`ParseError`], in linear time, without recursion.
//!
//! ```
//! use warptrace_ptx::{Cfg, Edits, Module};
//!
//! let text = "
//! .version 7.8
//! .target sm_80
//! .address_size 64
//! .visible .entry count(.param .u64 out) {
//!     .reg .pred %p1; .reg .b32 %r<3>;
//!     mov.u32 %r1, 0;
//! LOOP:
//!     // warptrace.loc 3
//!     add.u32 %r1, %r1, 1;
//!     setp.lt.u32 %p1, %r1, 9;
//!     @%p1 bra LOOP;
//!     ret;
//! }";
//! let module = Module::parse(text)?;
//! let body = module.function("count").and_then(|count| count.body.as_ref()).expect("it is defined");
//! let cfg = Cfg::new(body)?;
//! let marker = body.statements.iter().position(|it| it.comment() == Some("// warptrace.loc 3")).expect("it is there");
//! assert_eq!(cfg.blocks().len(), 3);
//! assert_eq!(cfg.loop_depth(cfg.block_of(marker)), 1);
//!
//! let mut edits = Edits::new();
//! edits.insert(module.header_end, "\n.global .b32 hits;\n");
//! edits.replace(body.statements[marker].span, "red.global.add.u32 [hits], 1;");
//! assert!(edits.apply(text)?.contains("LOOP:\n    red.global.add.u32 [hits], 1;\n    add"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What reads what
//!
//! | part | gives |
//! | --- | --- |
//! | [`Module`] | header, declarations, functions; where declarations may be inserted |
//! | [`Function`] | linkage, name, parameters, directives such as `.maxntid`; where a parameter may be appended |
//! | [`Body`] | statements in text order, flat, each with its span, scope depth and kind |
//! | [`Cfg`] | basic blocks, edges, dominators, natural loops; where code may be inserted that a block executes first |
//! | [`call_graph`] | which functions call which, and which call through registers |
//! | [`Edits`] | insertions and replacements, applied in one pass |
//! | [`only`], [`stands_alone`] | one kernel with what it needs, and whether it can do without its module |
//! | [`link`] | parts that a device linker puts together, as one text |
//! | [`points`] | markers for PTX that has none, at blocks, branches, loops, functions or waits |
//! | [`splice`] | traced copies of kernels, which record at markers |
//!
//! # Features
//!
//! `interpreter` adds the module `interpret`, which executes PTX on the CPU: the tests of the recording
//! sequences that [`splice`] puts into kernels need no GPU.
//!
//! # Why no published parser
//!
//! `ptx-syntax` (once `ptx-90-parser`), `singe-ptx` and ZLUDA's `ptx_parser` build typed trees of the
//! instructions they know, so comments are dropped and an unknown instruction is an error. `ptx-parser` was
//! last released in 2023, before the PTX of today's compilers. `ptx-parse` of NVIDIA's cuda-oxide keeps
//! spans, comments and unknown syntax as is needed here, but is not on crates.io and finds no control flow,
//! which is the larger half of this crate.
//!
//! # Limits
//!
//! - Instructions are not checked: an opcode is a name, operands are text between commas.
//! - A comment within an instruction or a declaration belongs to its span, and is no statement.
//! - `trap` and `exit` end a block; a call does not, even of a function that never returns.
//! - A directive that is not known ends with `;` or its block in braces, or with its line where the next line
//!   seems to begin a statement.
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
#[cfg(feature = "interpreter")]
pub mod interpret;
mod lexer;
mod link;
mod module;
mod parse;
pub mod points;
mod registers;
mod slice;
mod span;
pub mod splice;
mod uniform;
mod waiting;

pub use body::{Body, Directive, Label, Loc, Statement, StatementKind};
pub use calls::{CallGraph, Calls, call_graph};
pub use cfg::{Block, Cfg, CfgError, Edge, EdgeKind, Loop, Terminator};
pub use declaration::{Declaration, Declared, Linkage, Param, Space};
pub use edits::{EditError, Edits};
pub use error::ParseError;
pub use function::{Function, FunctionKind, HeaderDirective};
pub use instruction::{Guard, Instruction, Operand};
pub use link::{LinkError, Linked, link};
pub use module::{Item, ItemKind, Module};
pub use slice::{Bound, only, stands_alone};
pub use span::{Position, Span};
#[cfg(feature = "interpreter")]
#[doc(hidden)]
pub use uniform::{Flaw, with_flaw};
