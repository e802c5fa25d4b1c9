//! Parses declarations of registers, variables and parameters.

use super::{Nesting, Parser, parse_u64};
use crate::declaration::{Declaration, Declared, Linkage, Param, Space};
use crate::error::ParseError;
use crate::lexer::TokenKind;
use crate::span::Span;

struct Qualifiers<'a> {
    space: Option<Space>,
    align: Option<u32>,
    ty: &'a str,
}

impl<'a> Parser<'a> {
    pub(super) fn declaration(&mut self, linkage: Linkage) -> Result<Declaration<'a>, ParseError> {
        let qualifiers = self.qualifiers()?;
        let space = qualifiers.space.ok_or_else(|| self.unexpected("a state space, such as `.global`"))?;
        let mut names = vec![self.declared()?];
        loop {
            let token = self.code();
            if token.is(b';') {
                break;
            }
            self.expect_punct(b',', "`,` and a name, or `;`")?;
            names.push(self.declared()?);
        }
        self.step();
        Ok(Declaration { linkage, space, align: qualifiers.align, ty: qualifiers.ty, names })
    }

    pub(super) fn params(&mut self) -> Result<(Span, Vec<Param<'a>>), ParseError> {
        let open = self.expect_punct(b'(', "`(`")?;
        let mut params = Vec::new();
        while !self.code().is(b')') {
            if !params.is_empty() {
                self.expect_punct(b',', "`,` and a parameter, or `)`")?;
            }
            params.push(self.param()?);
        }
        let close = self.expect_punct(b')', "`)`")?;
        Ok((Span::new(open.start, close.end), params))
    }

    fn param(&mut self) -> Result<Param<'a>, ParseError> {
        let start = self.code().span.start;
        let Qualifiers { space, align, ty } = self.qualifiers()?;
        let space = space.ok_or_else(|| self.unexpected("a parameter, such as `.param .u64 name`"))?;
        let declared = if self.code().kind == TokenKind::Word {
            self.declared()?
        } else {
            let nowhere = Span::new(self.end, self.end);
            Declared { name: "", name_span: nowhere, count: None, dimensions: None, initialized: false }
        };
        let Declared { name, name_span, dimensions, .. } = declared;
        Ok(Param { span: Span::new(start, self.end), name, name_span, space, align, ty, dimensions })
    }

    fn qualifiers(&mut self) -> Result<Qualifiers<'a>, ParseError> {
        let (mut space, mut align) = (None, None);
        // After `.ptr`, space and alignment describe the memory that the parameter points to.
        let mut points = false;
        let mut ty: Option<Span> = None;
        loop {
            let token = self.code();
            if token.kind != TokenKind::Dot {
                break;
            }
            self.step();
            match self.slice(token.span) {
                ".align" => {
                    let bytes = self.expect_u32("an alignment in bytes")?;
                    align = align.or(Some(bytes).filter(|_| !points));
                }
                ".attribute" if self.code().is(b'(') => self.skip_group()?,
                ".ptr" => points = true,
                directive => match Space::from_directive(directive) {
                    Some(named) => {
                        space = space.or(Some(named));
                        // `.const[2]`, a numbered bank.
                        if self.code().is(b'[') {
                            self.skip_group()?;
                        }
                    }
                    None if points => {}
                    None => {
                        let start = ty.map_or(token.span.start, |ty| ty.start);
                        ty = Some(Span::new(start, token.span.end));
                    }
                },
            }
        }
        Ok(Qualifiers { space, align, ty: ty.map_or("", |ty| self.slice(ty)) })
    }

    /// Parses a name with its count, dimensions and value, up to `,`, `;` or `)`.
    fn declared(&mut self) -> Result<Declared<'a>, ParseError> {
        let name_span = self.expect(TokenKind::Word, "a name")?;
        let mut count = None;
        if self.take_punct(b'<') {
            count = Some(self.expect_u32("a number of names")?);
            self.expect_punct(b'>', "`>`")?;
        }
        let mut dimensions: Option<Span> = None;
        while self.peek_code().is(b'[') {
            let start = dimensions.map_or(self.code().span.start, |span| span.start);
            self.skip_group()?;
            dimensions = Some(Span::new(start, self.end));
        }
        let initialized = self.peek_code().is(b'=');
        if initialized {
            self.initializer()?;
        }
        let dimensions = dimensions.map(|span| self.slice(span));
        Ok(Declared { name: self.slice(name_span), name_span, count, dimensions, initialized })
    }

    /// Skips `=` and a value, up to the next `,` or `;`.
    fn initializer(&mut self) -> Result<(), ParseError> {
        let mut nesting = Nesting::default();
        loop {
            let token = self.code();
            if nesting.is_flat() && (token.is(b',') || token.is(b';')) {
                return Ok(());
            }
            self.nest(&mut nesting)?;
            self.step();
        }
    }
}

impl Declared<'_> {
    /// Returns the number of elements; `None` without dimensions, or if a size is open or not a plain number.
    #[must_use]
    pub fn elements(&self) -> Option<u64> {
        elements(self.dimensions?)
    }
}

impl Param<'_> {
    /// Returns the number of elements; `None` without dimensions, or if a size is open or not a plain number.
    #[must_use]
    pub fn elements(&self) -> Option<u64> {
        elements(self.dimensions?)
    }
}

/// Multiplies the sizes in brackets. `None` if a size is not a plain number.
pub(crate) fn elements(dimensions: &str) -> Option<u64> {
    let dimensions = dimensions.trim_start_matches('[').trim_end_matches(']');
    dimensions.split(']').try_fold(1u64, |elements, dimension| {
        elements.checked_mul(parse_u64(dimension.trim().trim_start_matches('[').trim())?)
    })
}
