//! Parses functions and their headers.

use super::Parser;
use crate::declaration::Linkage;
use crate::error::ParseError;
use crate::function::{Function, FunctionKind, HeaderDirective};
use crate::lexer::TokenKind;
use crate::span::Span;

impl<'a> Parser<'a> {
    /// Parses a function from `.entry` or `.func` to its closing brace or `;`.
    pub(super) fn function(
        &mut self,
        kind: FunctionKind,
        linkage: Linkage,
        start: usize,
    ) -> Result<Function<'a>, ParseError> {
        self.step();
        while self.code().kind == TokenKind::Dot {
            self.step();
            if self.code().is(b'(') {
                self.skip_group()?;
            }
        }
        let mut returns = Vec::new();
        if kind == FunctionKind::Func && self.token.is(b'(') {
            returns = self.params()?.1;
        }
        let name_span = self.expect(TokenKind::Word, "the function's name")?;
        let (mut param_list, mut params) = (None, Vec::new());
        if self.code().is(b'(') {
            let (span, list) = self.params()?;
            (param_list, params) = (Some(span), list);
        }
        let mut function = Function {
            kind,
            linkage,
            name: self.slice(name_span),
            name_span,
            span: Span::new(start, self.end),
            returns,
            params,
            param_list,
            directives: Vec::new(),
            body: None,
        };
        self.header_directives(&mut function.directives)?;
        if self.peek_code().is(b'{') {
            self.code();
            function.body = Some(self.body()?);
        } else if !self.take_punct(b';')
            && function.directives.last().is_none_or(|directive| directive.name != ".pragma")
        {
            self.code();
            return Err(self.unexpected("`{` and the function's body, or `;`"));
        }
        function.span.end = self.end;
        Ok(function)
    }

    fn header_directives(&mut self, directives: &mut Vec<HeaderDirective<'a>>) -> Result<(), ParseError> {
        loop {
            let token = self.peek_code();
            // A pragma ends with `;`, so the next directive may begin the next item of the module.
            let behind_pragma = directives.last().is_some_and(|last| last.name == ".pragma");
            if token.kind != TokenKind::Dot || behind_pragma && begins_item(self.slice(token.span)) {
                return Ok(());
            }
            let token = self.code();
            let name = self.slice(token.span);
            if name == ".pragma" {
                self.pragma()?;
            } else {
                self.step();
                loop {
                    match self.peek_code().kind {
                        TokenKind::Dot | TokenKind::Punct(b'{' | b';') | TokenKind::End => break,
                        TokenKind::UnterminatedString | TokenKind::UnterminatedComment => {
                            self.code();
                            return Err(self.unexpected("the value of a directive"));
                        }
                        _ => {
                            self.code();
                            self.step();
                        }
                    }
                }
            }
            let span = Span::new(token.span.start, self.end);
            let values = self.slice(Span::new(token.span.end, self.end)).trim_end_matches(';').trim();
            directives.push(HeaderDirective { span, name, values });
        }
    }
}

fn begins_item(directive: &str) -> bool {
    let known = [".version", ".target", ".address_size", ".entry", ".func", ".file", ".section", ".alias"];
    known.contains(&directive)
        || Linkage::from_directive(directive).is_some()
        || crate::declaration::Space::from_directive(directive).is_some()
}
