//! Parses items of module scope.

use super::{Parser, unquote};
use crate::declaration::Space;
use crate::error::ParseError;
use crate::function::FunctionKind;
use crate::lexer::TokenKind;
use crate::module::{Item, ItemKind, Module};
use crate::span::Span;

pub(crate) fn module(text: &str) -> Result<Module<'_>, ParseError> {
    let mut parser = Parser::new(text);
    let mut module = Module {
        text,
        functions: Vec::new(),
        items: Vec::new(),
        header_end: 0,
        version: (0, 0),
        targets: Vec::new(),
        address_size: None,
    };
    let mut header = Header::default();
    while parser.token.kind != TokenKind::End {
        let start = parser.token.span.start;
        if parser.token.kind == TokenKind::Comment {
            let span = parser.token.span;
            module.items.push(Item { span, kind: ItemKind::Comment });
            parser.step();
            continue;
        }
        if parser.token.kind == TokenKind::Word && header.target && parser.peek_second().is(b':') {
            let name = parser.slice(parser.token.span);
            parser.step();
            parser.expect_punct(b':', "`:`")?;
            header.closed = true;
            module.items.push(Item { span: Span::new(start, parser.end), kind: ItemKind::Label { name } });
            continue;
        }
        let directive = parser.directive_name("a directive, such as `.visible` or `.global`")?;
        if !header.allows(directive) {
            return Err(parser.unexpected(header.wanted()));
        }
        let kind = parser.item(&mut module, directive, start)?;
        if header.note(&kind) {
            module.header_end = end_of_line(text, parser.end);
        }
        module.items.push(Item { span: Span::new(start, parser.end), kind });
    }
    if header.target {
        return Ok(module);
    }
    Err(parser.unexpected(header.wanted()))
}

#[derive(Default)]
struct Header {
    version: bool,
    target: bool,
    /// Whether another item was seen.
    closed: bool,
}

impl Header {
    /// Returns true if `directive` may come now: `.version` comes first, then `.target`.
    fn allows(&self, directive: &str) -> bool {
        match directive {
            ".version" => true,
            ".target" | ".address_size" => self.version,
            _ => self.target,
        }
    }

    fn wanted(&self) -> &'static str {
        if self.version { "`.target`" } else { "`.version`: PTX begins with it" }
    }

    /// Notes an item; returns true if it belongs to the header, which ends at the first other item.
    fn note(&mut self, kind: &ItemKind<'_>) -> bool {
        self.version |= *kind == ItemKind::Version;
        self.target |= *kind == ItemKind::Target;
        self.closed |= !matches!(kind, ItemKind::Version | ItemKind::Target | ItemKind::AddressSize);
        !self.closed
    }
}

/// Returns the offset after the line of `offset` if only blanks or a line comment follow, otherwise `offset`.
fn end_of_line(text: &str, offset: usize) -> usize {
    let rest = &text[offset..];
    let line = rest.split_inclusive('\n').next().unwrap_or_default();
    let blank = line.trim_start();
    if blank.is_empty() || blank.starts_with("//") { offset + line.len() } else { offset }
}

impl<'a> Parser<'a> {
    fn directive_name(&self, expected: &'static str) -> Result<&'a str, ParseError> {
        match self.token.kind {
            TokenKind::Dot => Ok(self.slice(self.token.span)),
            _ => Err(self.unexpected(expected)),
        }
    }

    fn item(
        &mut self,
        module: &mut Module<'a>,
        directive: &'a str,
        start: usize,
    ) -> Result<ItemKind<'a>, ParseError> {
        let (linkage, name) = self.linkage("a function or variable behind its linkage")?;
        match name {
            ".version" => self.version(module),
            ".target" => self.target(module),
            ".address_size" => {
                self.step();
                module.address_size = Some(self.expect_u32("an address size in bits")?);
                Ok(ItemKind::AddressSize)
            }
            ".entry" | ".func" => {
                let kind = if name == ".entry" { FunctionKind::Entry } else { FunctionKind::Func };
                let function = self.function(kind, linkage, start)?;
                module.functions.push(function);
                Ok(ItemKind::Function(module.functions.len() - 1))
            }
            ".file" => self.file(),
            ".section" => self.section(),
            ".alias" => self.alias(),
            ".pragma" => {
                self.pragma()?;
                Ok(ItemKind::Pragma)
            }
            _ if Space::from_directive(name).is_some() => Ok(ItemKind::Variable(self.declaration(linkage)?)),
            _ => {
                self.unknown_directive(false)?;
                Ok(ItemKind::Other { name: directive })
            }
        }
    }

    fn version(&mut self, module: &mut Module<'a>) -> Result<ItemKind<'a>, ParseError> {
        self.step();
        let token = self.code();
        let parsed = self
            .slice(token.span)
            .split_once('.')
            .and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
        module.version = parsed.ok_or_else(|| self.unexpected("a version, such as `7.8`"))?;
        self.step();
        Ok(ItemKind::Version)
    }

    fn target(&mut self, module: &mut Module<'a>) -> Result<ItemKind<'a>, ParseError> {
        self.step();
        loop {
            let word = self.expect(TokenKind::Word, "a target, such as `sm_70`")?;
            module.targets.push(self.slice(word));
            if !self.take_punct(b',') {
                return Ok(ItemKind::Target);
            }
        }
    }

    fn file(&mut self) -> Result<ItemKind<'a>, ParseError> {
        self.step();
        let index = self.expect_u32("a file's number")?;
        let name = self.expect(TokenKind::String, "a file's name in quotes")?;
        while self.take_punct(b',') {
            self.expect(TokenKind::Number, "a file's time or size")?;
        }
        Ok(ItemKind::File { index, name: unquote(self.slice(name)) })
    }

    fn section(&mut self) -> Result<ItemKind<'a>, ParseError> {
        self.step();
        let token = self.code();
        let (TokenKind::Dot | TokenKind::Word) = token.kind else {
            return Err(self.unexpected("a section's name, such as `.debug_str`"));
        };
        self.step();
        if !self.code().is(b'{') {
            return Err(self.unexpected("`{` and the section's data"));
        }
        self.skip_group()?;
        Ok(ItemKind::Section { name: self.slice(token.span) })
    }

    fn alias(&mut self) -> Result<ItemKind<'a>, ParseError> {
        self.step();
        let name = self.expect(TokenKind::Word, "the alias")?;
        self.expect_punct(b',', "`,` and the function that the alias names")?;
        let target = self.expect(TokenKind::Word, "the function that the alias names")?;
        self.expect_punct(b';', "`;`")?;
        Ok(ItemKind::Alias { name: self.slice(name), target: self.slice(target) })
    }
}
