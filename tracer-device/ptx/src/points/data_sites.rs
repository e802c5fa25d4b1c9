//! Sites: the instructions that access memory, with a marker of data in front of each.

use std::sync::Arc;

use warptrace_abi::data::{Derived, MAX_KERNEL_SITES, MAX_SITE, SiteKind, SiteSpace};
use warptrace_abi::marker::{DataGuard, DataMarker};
use warptrace_abi::recording::Spaces;

use super::accesses::{Access, CACHE, accesses_of, address_of};
use super::derived::{Follows, Values};
use super::source::{CallSite, Lines, SourcePlace};
use crate::registers::Registers;
use crate::splice::Source;
use crate::uniform::words;
use crate::{Body, Cfg, Function, Instruction};

/// An instruction that accesses memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// Its number, 1 to [`MAX_SITE`].
    pub id: u16,
    /// The kernel's name as in the PTX, mangled.
    pub function: Arc<str>,
    /// What it does.
    pub kind: SiteKind,
    /// Where its addresses point.
    pub space: SiteSpace,
    /// Bytes that a lane touches, all elements of a vector; 0 if a register says how many.
    pub bytes: u32,
    /// Elements of a vector, at least 1.
    pub elements: u32,
    /// Whether a predicate may switch lanes off.
    pub is_predicated: bool,
    /// The cache operator, without its dot; empty if there is none.
    pub cache: Arc<str>,
    /// Location id of the events of the block that it lies in, or of those that imply them: each executes it
    /// once. 0 if there are none.
    pub location: u16,
    /// Line in the original text, from 1.
    pub ptx_line: usize,
    /// Column there in characters, from 1.
    pub ptx_column: usize,
    /// Where the source has it; `None` if the compiler did not say.
    pub source: Option<SourcePlace>,
    /// The calls through which that line was inlined into the kernel, innermost first.
    pub inlined_at: Arc<[CallSite]>,
    /// The site from which its addresses follow, so that nothing is recorded of it.
    pub derived: Option<Derived>,
}

/// Whether accesses to a space are asked for.
const fn is_among(space: SiteSpace, spaces: Spaces) -> bool {
    match space {
        SiteSpace::Global => spaces.global,
        SiteSpace::Shared | SiteSpace::Cluster => spaces.shared,
        SiteSpace::Local => spaces.local,
        _ => !spaces.is_none(),
    }
}

/// A site of a kernel, and where its marker stands.
pub(super) struct Found {
    pub(super) site: Site,
    /// Offset in the original text of the instruction.
    pub(super) at: usize,
    pub(super) marker: String,
}

/// The sites of a function.
#[derive(Default)]
pub(super) struct FoundSites {
    /// By number: first those that are recorded, then those that follow from them.
    pub(super) sites: Vec<Found>,
    /// Why some accesses are not recorded.
    pub(super) unrecorded: Vec<String>,
}

/// An access that is asked for.
struct Place<'b, 'a> {
    access: Access,
    instruction: &'b Instruction<'a>,
    statement: usize,
    block: usize,
    operand: String,
    guard: Option<DataGuard<'a>>,
    /// How it follows from another one, by their indices.
    follows: Option<Follows>,
}

/// The accesses of a function that are asked for, and those that are left out.
struct Places<'b, 'a> {
    all: Vec<Place<'b, 'a>>,
    in_functions: u32,
    unreadable: Vec<String>,
}

impl<'b, 'a> Places<'b, 'a> {
    fn of(function: &Function<'a>, body: &'b Body<'a>, flow: &Cfg, spaces: Spaces) -> Self {
        let registers = Registers::of(body);
        let mut values = Values::of(&registers);
        let mut found = Self { all: Vec::new(), in_functions: 0, unreadable: Vec::new() };
        for (statement, instruction) in body.instructions() {
            let block = flow.block_of(statement);
            if !flow.is_reachable(block) {
                continue;
            }
            values.enter(block);
            for access in accesses_of(instruction).into_iter().filter(|access| is_among(access.space, spaces))
            {
                if !function.is_entry() {
                    found.in_functions += 1;
                    continue;
                }
                let mut bracketed =
                    instruction.operands.iter().filter(|operand| operand.text.starts_with('['));
                let text = bracketed.nth(access.bracketed).map_or("", |operand| operand.text);
                let operand = address_of(text);
                let guard = instruction
                    .guard
                    .map(|guard| DataGuard { predicate: guard.predicate, negated: guard.negated });
                let marker = DataMarker { site: 1, operand: &operand, guard, root: None }.to_string();
                let is_read = DataMarker::parse(&marker).is_some_and(|marker| marker.is_ok());
                let source = Source::of(&registers, &operand, statement).ok().filter(|_| is_read);
                let Some(source) = source else {
                    found.unreadable.push(operand);
                    continue;
                };
                let follows = match source {
                    Source::Address { register, offset, .. } => words(text)
                        .find(|word| *word == register)
                        .and_then(|name| values.access(found.all.len(), (name, offset), guard, statement)),
                    _ => None,
                };
                found.all.push(Place { access, instruction, statement, block, operand, guard, follows });
            }
            values.step(instruction, statement);
        }
        found
    }

    /// Gives numbers from `next` on, first to what is recorded; `None` if it is beyond what a kernel or a
    /// text may have.
    fn numbers(&self, next: u32) -> Vec<Option<u16>> {
        let mut numbers = vec![None; self.all.len()];
        let mut next = (next..=u32::from(MAX_SITE)).map_while(|number| u16::try_from(number).ok());
        let recorded = (0..).zip(&self.all).filter(|(_, place)| place.follows.is_none());
        for (index, _) in recorded.take(MAX_KERNEL_SITES) {
            let index: usize = index;
            numbers[index] = next.next();
        }
        for (index, place) in self.all.iter().enumerate() {
            if let Some(Follows { root, .. }) = place.follows {
                numbers[index] = numbers[root].and_then(|_| next.next());
            }
        }
        numbers
    }
}

/// Finds the accesses of a function that are asked for; `next` is the number of the first, and `location`
/// tells that of a block's events.
pub(super) fn find(
    function: &Function<'_>,
    body: &Body<'_>,
    flow: &Cfg,
    (spaces, next): (Spaces, u32),
    lines: &Lines,
    location: impl Fn(usize) -> u16,
) -> FoundSites {
    let places = Places::of(function, body, flow, spaces);
    let numbers = places.numbers(next);
    let name: Arc<str> = function.name.into();
    let mut found = FoundSites::default();
    for (place, id) in places.all.iter().zip(&numbers) {
        let &Place { access, instruction, statement, ref operand, guard, .. } = place;
        let Some(id) = *id else { continue };
        let derived = place.follows.and_then(|Follows { root, offset, is_narrow }| {
            Some(Derived { root: numbers[root]?, offset, is_narrow })
        });
        let root = derived.map(|derived| derived.root);
        let (source, inlined_at) = lines.first_of(statement..statement + 1);
        let cache = instruction.modifiers().find(|modifier| CACHE.contains(modifier));
        let site = Site {
            id,
            function: Arc::clone(&name),
            kind: access.kind,
            space: access.space,
            bytes: access.bytes,
            elements: access.elements,
            is_predicated: guard.is_some(),
            cache: cache.unwrap_or_default().into(),
            location: location(place.block),
            // Filled in when all offsets are known.
            ptx_line: 0,
            ptx_column: 0,
            source,
            inlined_at,
            derived,
        };
        let marker = DataMarker { site: id, operand, guard, root }.to_string();
        found.sites.push(Found { site, at: body.statements[statement].span.start, marker });
    }
    found.sites.sort_by_key(|found| found.site.id);
    let too_many = places.all.len() - found.sites.len();
    let Places { in_functions, unreadable, .. } = places;
    if in_functions != 0 {
        found.unrecorded.push(format!(
            "it is not inlined: {in_functions} of its accesses are not recorded, only a kernel's own are"
        ));
    }
    if too_many != 0 {
        found.unrecorded.push(format!(
            "{too_many} of its accesses are not recorded: of a kernel at most {MAX_KERNEL_SITES} sites are, of a text {MAX_SITE}"
        ));
    }
    if let Some(first) = unreadable.first() {
        let count = unreadable.len();
        found.unrecorded.push(format!(
            "{count} of its accesses are not recorded: `{first}` cannot be read as an address"
        ));
    }
    found
}
