//! Declarations of registers, variables and parameters.

use crate::span::Span;

/// Linkage of a name: its visibility outside the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Linkage {
    /// No directive: visible in this module only.
    #[default]
    None,
    /// `.visible`
    Visible,
    /// `.extern`: defined elsewhere, or dynamic shared memory.
    Extern,
    /// `.weak`
    Weak,
    /// `.common`
    Common,
}

impl Linkage {
    pub(crate) fn from_directive(directive: &str) -> Option<Self> {
        match directive {
            ".visible" => Some(Self::Visible),
            ".extern" => Some(Self::Extern),
            ".weak" => Some(Self::Weak),
            ".common" => Some(Self::Common),
            _ => None,
        }
    }
}

/// State space of a declaration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Space {
    /// `.reg`
    Register,
    /// `.sreg`
    SpecialRegister,
    /// `.local`
    Local,
    /// `.shared`, also qualified (`.shared::cta`)
    Shared,
    /// `.param`, also qualified
    Param,
    /// `.global`
    Global,
    /// `.const`, also one of its numbered banks
    Const,
    /// `.tex`
    Texture,
}

impl Space {
    pub(crate) fn from_directive(directive: &str) -> Option<Self> {
        let space = directive.split_once("::").map_or(directive, |(space, _)| space);
        match space {
            ".reg" => Some(Self::Register),
            ".sreg" => Some(Self::SpecialRegister),
            ".local" => Some(Self::Local),
            ".shared" => Some(Self::Shared),
            ".param" => Some(Self::Param),
            ".global" => Some(Self::Global),
            ".const" => Some(Self::Const),
            ".tex" => Some(Self::Texture),
            _ => None,
        }
    }
}

/// A state space, a type and names: `.reg .b32 %r<4>, %q;` or `.shared .align 16 .b8 tile[1024];`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declaration<'a> {
    /// Linkage.
    pub linkage: Linkage,
    /// State space.
    pub space: Space,
    /// Alignment in bytes, if given.
    pub align: Option<u32>,
    /// The type with its dots: `.b32`, `.v4 .f32`. Empty if not given.
    pub ty: &'a str,
    /// Declared names.
    pub names: Vec<Declared<'a>>,
}

/// One name of a declaration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Declared<'a> {
    /// The name. For `%r<4>`, the part before `<`.
    pub name: &'a str,
    /// Span of the name.
    pub name_span: Span,
    /// N of `name<N>`, which declares `name0` to `name(N-1)`.
    pub count: Option<u32>,
    /// The dimensions with their brackets: `[4][2]`; `[]` for an open size.
    pub dimensions: Option<&'a str>,
    /// Whether an initializer follows.
    pub initialized: bool,
}

/// A parameter or result of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Param<'a> {
    /// The parameter's text, without a comma after it.
    pub span: Span,
    /// The name; empty if not given. `_` in prototypes.
    pub name: &'a str,
    /// Span of the name.
    pub name_span: Span,
    /// State space: `.param` or `.reg`.
    pub space: Space,
    /// Alignment in bytes, if given.
    pub align: Option<u32>,
    /// The type with its dot.
    pub ty: &'a str,
    /// The dimensions with their brackets: `[112]`.
    pub dimensions: Option<&'a str>,
}
