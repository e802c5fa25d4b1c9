//! Parses a function's body, statement by statement.

use super::{Nesting, Parser, unquote};
use crate::body::{Body, Directive, Label, Loc, Statement, StatementKind};
use crate::declaration::Space;
use crate::error::ParseError;
use crate::instruction::{Guard, Instruction, Operand};
use crate::lexer::TokenKind;
use crate::span::Span;

/// Prefix of the string of a `.pragma` with which C++ names a point or a value.
const NAMED: &str = "WARPTRACE";

impl<'a> Parser<'a> {
    pub(super) fn body(&mut self) -> Result<Body<'a>, ParseError> {
        let open = self.expect_punct(b'{', "`{`")?.start;
        let mut statements = std::mem::take(&mut self.statements);
        let mut depth: u32 = 0;
        loop {
            let token = self.token;
            let start = token.span.start;
            let kind = match token.kind {
                TokenKind::Punct(b'}') if depth == 0 => {
                    self.step();
                    #[expect(
                        clippy::drain_collect,
                        reason = "the list keeps its memory, what is returned has no more than it needs"
                    )]
                    let kept = statements.drain(..).collect();
                    self.statements = statements;
                    return Ok(Body { open, close: start, statements: kept });
                }
                TokenKind::Comment => {
                    self.step();
                    let kind = StatementKind::Comment(self.slice(token.span));
                    statements.push(Statement { span: token.span, depth, kind });
                    continue;
                }
                TokenKind::Punct(byte @ (b'{' | b'}' | b';')) => {
                    self.step();
                    match byte {
                        b'{' => StatementKind::ScopeOpen,
                        b'}' => StatementKind::ScopeClose,
                        _ => StatementKind::Empty,
                    }
                }
                TokenKind::Dot => match self.body_directive()? {
                    // A name from the source, in a directive. A comment would be lost when nvcc packs the PTX
                    // into a program.
                    Directive::Pragma(said) if said.len() == 1 && said[0].starts_with(NAMED) => {
                        StatementKind::Comment(said[0])
                    }
                    directive => StatementKind::Directive(directive),
                },
                TokenKind::Word if self.is_label() => StatementKind::Label(self.label()),
                TokenKind::Word | TokenKind::Punct(b'@') => StatementKind::Instruction(self.instruction()?),
                TokenKind::End => return Err(self.unexpected("`}`, the end of the function's body")),
                _ => return Err(self.unexpected("a label, an instruction or a directive")),
            };
            depth += u32::from(matches!(kind, StatementKind::ScopeOpen));
            let closes = matches!(kind, StatementKind::ScopeClose);
            statements.push(Statement { span: Span::new(start, self.end), depth, kind });
            depth -= u32::from(closes);
        }
    }

    fn label(&mut self) -> Label<'a> {
        let name = self.slice(self.token.span);
        self.step();
        self.code();
        self.step();
        let next = self.peek_code();
        let names_directive = next.kind == TokenKind::Dot
            && matches!(self.slice(next.span), ".branchtargets" | ".calltargets" | ".callprototype");
        Label { name, names_directive }
    }

    fn instruction(&mut self) -> Result<Instruction<'a>, ParseError> {
        let guard = if self.token.is(b'@') { Some(self.guard()?) } else { None };
        let mut opcode_span = self.expect(TokenKind::Word, "an instruction")?;
        while self.token.kind == TokenKind::Dot {
            opcode_span.end = self.token.span.end;
            self.step();
        }
        let operands = self.operands()?;
        Ok(Instruction { guard, opcode: self.slice(opcode_span), opcode_span, operands })
    }

    fn guard(&mut self) -> Result<Guard<'a>, ParseError> {
        let start = self.token.span.start;
        self.step();
        let negated = self.code().is(b'!');
        if negated {
            self.step();
        }
        let name = self.expect(TokenKind::Word, "the guard's predicate")?;
        Ok(Guard { span: Span::new(start, name.end), negated, predicate: self.slice(name) })
    }

    /// Parses operands up to and including the `;`.
    fn operands(&mut self) -> Result<Vec<Operand<'a>>, ParseError> {
        let mut operands = std::mem::take(&mut self.operands);
        let mut nesting = std::mem::take(&mut self.nesting);
        let mut current: Option<Span> = None;
        loop {
            let token = self.code();
            let ends = nesting.is_flat() && (token.is(b';') || token.is(b','));
            if !ends {
                self.nest(&mut nesting)?;
                let start = current.map_or(token.span.start, |span| span.start);
                current = Some(Span::new(start, token.span.end));
            } else if current.is_some() || token.is(b',') || !operands.is_empty() {
                let span = current.take().unwrap_or(Span::new(token.span.start, token.span.start));
                operands.push(Operand { span, text: self.slice(span) });
            }
            self.step();
            if ends && token.is(b';') {
                #[expect(
                    clippy::drain_collect,
                    reason = "the list keeps its memory, what is returned has no more than it needs"
                )]
                let kept = operands.drain(..).collect();
                (self.operands, self.nesting) = (operands, nesting);
                return Ok(kept);
            }
        }
    }

    fn body_directive(&mut self) -> Result<Directive<'a>, ParseError> {
        let first = self.slice(self.token.span);
        let (linkage, name) = self.linkage("a variable behind its linkage")?;
        match name {
            ".loc" => Ok(Directive::Loc(self.loc()?)),
            ".pragma" => Ok(Directive::Pragma(self.pragma()?)),
            ".branchtargets" => Ok(Directive::BranchTargets { labels: self.names()? }),
            ".calltargets" => Ok(Directive::CallTargets { functions: self.names()? }),
            ".callprototype" => {
                self.operands()?;
                Ok(Directive::CallPrototype)
            }
            _ => match Space::from_directive(name) {
                Some(Space::Register) => Ok(Directive::Registers(self.declaration(linkage)?)),
                Some(_) => Ok(Directive::Variable(self.declaration(linkage)?)),
                None => {
                    self.unknown_directive(true)?;
                    Ok(Directive::Other { name: first })
                }
            },
        }
    }

    /// Parses `.loc 1 12 3`, with optional `function_name` and `inlined_at`.
    fn loc(&mut self) -> Result<Loc<'a>, ParseError> {
        self.step();
        let file = self.expect_u32("a file's number")?;
        let line = self.expect_u32("a line")?;
        let mut loc = Loc { file, line, column: 0, function_name: None, inlined_at: None };
        if self.peek_code().kind == TokenKind::Number {
            loc.column = self.expect_u32("a column")?;
        }
        while self.take_punct(b',') {
            let key = self.code();
            match self.slice(key.span) {
                "function_name" => {
                    self.step();
                    loc.function_name = Some(self.debug_label()?);
                }
                "inlined_at" => {
                    self.step();
                    let file = self.expect_u32("a file's number")?;
                    let line = self.expect_u32("a line")?;
                    loc.inlined_at = Some((file, line, self.expect_u32("a column")?));
                }
                _ => return Err(self.unexpected("`function_name` or `inlined_at`")),
            }
        }
        Ok(loc)
    }

    /// Parses a label of debug data with an optional offset: `$L__info_string0+16`.
    fn debug_label(&mut self) -> Result<&'a str, ParseError> {
        let mut token = self.code();
        let (TokenKind::Word | TokenKind::Dot) = token.kind else {
            return Err(self.unexpected("a label of debug data"));
        };
        self.step();
        if self.take_punct(b'+') {
            token.span.end = self.expect(TokenKind::Number, "an offset")?.end;
        }
        Ok(self.slice(token.span))
    }

    pub(super) fn pragma(&mut self) -> Result<Vec<&'a str>, ParseError> {
        self.step();
        let mut strings = Vec::new();
        loop {
            let string = self.expect(TokenKind::String, "a string in quotes")?;
            strings.push(unquote(self.slice(string)));
            if self.code().is(b';') {
                self.step();
                return Ok(strings);
            }
            self.expect_punct(b',', "`,` or `;`")?;
        }
    }

    fn names(&mut self) -> Result<Vec<&'a str>, ParseError> {
        self.step();
        Ok(self.operands()?.into_iter().map(|operand| operand.text).collect())
    }

    /// Skips an unknown directive: to its `;` or to the end of its block in braces. If a statement seems to
    /// begin on a new line before that, the directive ends with its line, as `.loc` does.
    pub(super) fn unknown_directive(&mut self, in_body: bool) -> Result<(), ParseError> {
        let mut nesting = Nesting::default();
        let mut last = self.token;
        let first = last;
        self.step();
        loop {
            let token = self.peek_code();
            if nesting.is_flat() {
                let new_line = token.starts_line
                    && match token.kind {
                        TokenKind::Dot | TokenKind::Punct(b'@') => true,
                        TokenKind::Punct(b'{') => in_body,
                        // A list continues after a comma, and may begin on the line after its directive.
                        TokenKind::Word => !last.is(b',') && last != first,
                        _ => false,
                    };
                if new_line || matches!(token.kind, TokenKind::End | TokenKind::Punct(b'}')) {
                    return Ok(());
                }
            }
            self.code();
            self.nest(&mut nesting)?;
            self.step();
            last = token;
            let closes = nesting.is_flat() && token.is(b'}') && !self.peek_code().is(b';');
            if closes || nesting.is_flat() && token.is(b';') {
                return Ok(());
            }
        }
    }
}
