//! Declarations of registers, variables and parameters.

use crate::span::Span;

/// Who may see a name outside the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Linkage {
    /// Only this module: no directive.
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
    /// Returns the linkage that a directive states.
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
    /// Returns the state space that a directive names.
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

/// `.reg .b32 %r<4>, %q;` or `.shared .align 16 .b8 tile[1024];`: a state space, a type, names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declaration<'a> {
    /// Linkage.
    pub linkage: Linkage,
    /// State space.
    pub space: Space,
    /// Alignment in bytes, where stated.
    pub align: Option<u32>,
    /// The type, its dots included: `.b32`, `.v4 .f32`. Empty where none is stated.
    pub ty: &'a str,
    /// What is declared.
    pub names: Vec<Declared<'a>>,
}

/// One name of a declaration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Declared<'a> {
    /// The name; of `%r<4>`, the part before `<`.
    pub name: &'a str,
    /// The name's text.
    pub name_span: Span,
    /// N of `name<N>`, which declares `name0` to `name(N-1)`.
    pub count: Option<u32>,
    /// The dimensions with their brackets: `[4][2]`; `[]` where the size is open.
    pub dimensions: Option<&'a str>,
    /// Whether a value follows, behind `=`.
    pub initialized: bool,
}

/// One parameter of a function, or one of its results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Param<'a> {
    /// The parameter's text, without the comma that follows.
    pub span: Span,
    /// The name; empty where there is none. `_` in prototypes.
    pub name: &'a str,
    /// The name's text.
    pub name_span: Span,
    /// State space: parameter or register.
    pub space: Space,
    /// Alignment in bytes, where stated.
    pub align: Option<u32>,
    /// The type, its dot included.
    pub ty: &'a str,
    /// The dimensions with their brackets: `[112]`.
    pub dimensions: Option<&'a str>,
}
