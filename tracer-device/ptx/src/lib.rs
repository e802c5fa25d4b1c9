//! Parses PTX, the assembly text that compilers pass to NVIDIA's driver, and edits it by span.
//!
//! The crate is for tools that insert code into optimised PTX from any compiler. It models only the structure
//! that such tools need: functions, parameters, scopes, labels, branches, calls, `.loc` and comments. It
//! copies everything else byte for byte, so instructions and directives of later PTX versions pass unchanged.
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
//! # Overview
//! | part | contents |
//! | --- | --- |
//! | [`Module`] | header, declarations, functions; where declarations may be inserted |
//! | [`Function`] | linkage, name, parameters, directives such as `.maxntid`; where a parameter may be appended |
//! | [`Body`] | statements in text order, flat, each with its span, scope depth and kind |
//! | [`Cfg`] | basic blocks, edges, dominators, natural loops; where code may be inserted in a block |
//! | [`call_graph`] | direct calls of each function, and whether it calls through registers |
//! | [`Edits`] | insertions and replacements, applied in one pass |
//! | [`only`], [`stands_alone`] | one kernel with its callees; whether kernels can leave their module |
//! | [`link`] | links the parts of a program into one text, as a device linker does |
//! | [`points`] | inserts markers into unmarked PTX, at blocks, branches, loops, functions or waits |
//! | [`splice`] | makes traced copies of kernels, which record at markers |
//!
//! # Features
//! `interpreter` adds the module `interpret`, which executes PTX on the CPU. With it, the tests of the
//! recording sequences that [`splice`] inserts need no GPU.
//!
//! # Why no published parser
//! `ptx-syntax` (once `ptx-90-parser`), `singe-ptx` and ZLUDA's `ptx_parser` build typed trees of known
//! instructions: they drop comments and reject unknown instructions. `ptx-parser` was last released in 2023.
//! `ptx-parse` of NVIDIA's cuda-oxide keeps spans, comments and unknown syntax, but is not on crates.io and
//! has no control flow analysis, which is the larger half of this crate.
//!
//! # Limits
//! - Instructions are not checked: an opcode is a name, operands are text between commas.
//! - A comment within an instruction or a declaration is part of its span, not a separate statement.
//! - `trap` and `exit` end a block; a call does not, even if the function never returns.
//! - An unknown directive ends with `;` or its block in braces, or with its line if the next line seems to
//!   begin a statement.
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
