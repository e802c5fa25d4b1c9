//! Data sites: instructions that access memory, and named values. Each gets a data marker in front of it.

use std::collections::HashMap;
use std::sync::Arc;

use warptrace_abi::data::{Derived, MAX_KERNEL_SITES, MAX_SITE, SiteKind, SiteSpace, ValueType};
use warptrace_abi::marker::{DataGuard, DataMarker, MarkerError, ValueMarker, ValueName};
use warptrace_abi::recording::Spaces;

use super::accesses::{Access, CACHE, accesses_of, address_of};
use super::derived::{Follows, Values};
use super::source::{CallSite, Lines, SourcePlace};
use crate::registers::Registers;
use crate::splice::DataSource;
use crate::uniform::words;
use crate::{Body, Cfg, Function, Instruction};

/// An instruction that accesses memory, or a value that the source names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// Number of the site, 1 to [`MAX_SITE`].
    pub id: u16,
    /// The kernel's mangled name, as in the PTX.
    pub function: Arc<str>,
    /// Kind of access.
    pub kind: SiteKind,
    /// State space of the addresses.
    pub space: SiteSpace,
    /// Bytes that a lane accesses, with all elements of a vector; 0 if a register holds the number.
    pub bytes: u32,
    /// Number of vector elements, at least 1.
    pub elements: u32,
    /// Whether the instruction has a guard.
    pub is_predicated: bool,
    /// The cache operator without its dot; empty if none.
    pub cache: Arc<str>,
    /// Location id of the block's events or of events that imply them: each executes the site once. 0: none.
    pub location: u16,
    /// Line in the original text, from 1.
    pub ptx_line: usize,
    /// Column of the site in characters, from 1.
    pub ptx_column: usize,
    /// Source position; `None` if unknown.
    pub source: Option<SourcePlace>,
    /// The inlined calls that lead to that position, innermost first.
    pub inlined_at: Arc<[CallSite]>,
    /// The site from which the addresses are derived. Derived sites are not recorded.
    pub derived: Option<Derived>,
    /// The named value, for sites of values.
    pub value: Option<SiteValue>,
}

/// A value that the source names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteValue {
    /// Id in the table of a module of `#[warptrace::kernels]`; 0 if the value is named in C++.
    pub id: u16,
    /// Name in C++, cut after [`MAX_VALUE_NAME`] bytes; empty if the value has an id.
    pub name: Arc<str>,
    /// Type of the value.
    pub ty: ValueType,
}

/// Bytes after which a value's name is cut; `…` is then appended.
pub const MAX_VALUE_NAME: usize = 200;

impl SiteValue {
    fn new(marker: &ValueMarker<'_>) -> Self {
        let (id, name) = match marker.of {
            ValueName::Id(id) => (id, String::new()),
            ValueName::Name(name) if name.len() > MAX_VALUE_NAME => {
                (0, format!("{}…", &name[..name.floor_char_boundary(MAX_VALUE_NAME)]))
            }
            ValueName::Name(name) => (0, name.to_owned()),
        };
        Self { id, name: name.into(), ty: marker.ty }
    }
}

const fn is_among(space: SiteSpace, spaces: Spaces) -> bool {
    match space {
        SiteSpace::Global => spaces.global,
        SiteSpace::Shared | SiteSpace::Cluster => spaces.shared,
        SiteSpace::Local => spaces.local,
        SiteSpace::None => spaces.values,
        _ => spaces.has_memory(),
    }
}

pub(super) struct MarkedSite {
    pub(super) site: Site,
    /// Offset of the instruction in the original text.
    pub(super) at: usize,
    pub(super) marker: String,
}

#[derive(Default)]
pub(super) struct FoundSites {
    /// By number: recorded sites first, then derived ones.
    pub(super) sites: Vec<MarkedSite>,
    /// Further places of these sites, by offset: values that the compiler duplicates, as in unrolled loops.
    pub(super) copies: Vec<(usize, String)>,
    /// Reasons why some accesses are not recorded.
    pub(super) unrecorded: Vec<String>,
}

struct AccessPlace<'b, 'a> {
    access: Access,
    what: What<'b, 'a>,
    statement: usize,
    block: usize,
    operand: String,
    guard: Option<DataGuard<'a>>,
    /// Derivation from an earlier access, given by its index.
    follows: Option<Follows>,
}

#[derive(Clone, Copy)]
enum What<'b, 'a> {
    Instruction(&'b Instruction<'a>),
    Value(ValueMarker<'a>),
}

/// The requested accesses of a function, and the number that are left out.
struct Places<'b, 'a> {
    all: Vec<AccessPlace<'b, 'a>>,
    in_functions: u32,
    unreadable: Vec<String>,
}

impl<'b, 'a> Places<'b, 'a> {
    fn new(function: &Function<'a>, body: &'b Body<'a>, flow: &Cfg, spaces: Spaces) -> Self {
        let registers = Registers::new(body);
        let mut values = Values::new(&registers);
        let mut found = Self { all: Vec::new(), in_functions: 0, unreadable: Vec::new() };
        for (statement, found_there) in body.statements.iter().enumerate() {
            if spaces.values
                && let Some(marker) = found_there.comment().and_then(ValueMarker::parse)
                && flow.is_reachable(flow.block_of(statement))
            {
                found.value(function, &registers, marker, (statement, flow.block_of(statement)));
            }
            let Some(instruction) = found_there.instruction() else { continue };
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
                let source = DataSource::new(&registers, &operand, statement).ok().filter(|_| is_read);
                let Some(source) = source else {
                    found.unreadable.push(format!("`{operand}` cannot be read as an address"));
                    continue;
                };
                let follows = match source {
                    DataSource::Address { register, offset, .. } => words(text)
                        .find(|word| *word == register)
                        .and_then(|name| values.access(found.all.len(), (name, offset), guard, statement)),
                    _ => None,
                };
                let what = What::Instruction(instruction);
                found.all.push(AccessPlace { access, what, statement, block, operand, guard, follows });
            }
            values.step(instruction, statement);
        }
        found
    }

    fn value(
        &mut self,
        function: &Function<'a>,
        registers: &Registers<'a>,
        marker: Result<ValueMarker<'a>, MarkerError<'a>>,
        (statement, block): (usize, usize),
    ) {
        if !function.is_entry() {
            self.in_functions += 1;
            return;
        }
        let read = marker.map_err(|error| error.to_string()).and_then(|marker| {
            match DataSource::new(registers, marker.register, statement)? {
                DataSource::Value { bits, .. } if bits == 8 * marker.ty.bytes() => Ok(marker),
                _ => Err(format!("`{}` has not the bits of {}", marker.register, marker.ty.name())),
            }
        });
        match read {
            Err(reason) => self.unreadable.push(reason),
            Ok(marker) => {
                let (kind, space, bytes) = (SiteKind::Value, SiteSpace::None, marker.ty.bytes());
                let access = Access { bracketed: 0, kind, space, bytes, elements: 1 };
                let (what, operand) = (What::Value(marker), marker.register.to_owned());
                self.all.push(AccessPlace {
                    access,
                    what,
                    statement,
                    block,
                    operand,
                    guard: None,
                    follows: None,
                });
            }
        }
    }

    /// Returns for each place its own index, or the index of the first place with the same value: the same id
    /// or name, type and source line.
    fn first_of_values(&self, lines: &Lines) -> Vec<usize> {
        let mut known: HashMap<_, usize> = HashMap::new();
        let mut first = Vec::with_capacity(self.all.len());
        for (index, place) in self.all.iter().enumerate() {
            first.push(match place.what {
                What::Instruction(_) => index,
                What::Value(ValueMarker { of, ty, .. }) => {
                    let source = lines.first_of(place.statement..place.statement + 1).0;
                    *known.entry((of, ty, source)).or_insert(index)
                }
            });
        }
        first
    }

    /// Assigns numbers from `next` on: values first, then recorded accesses, then derived ones; `None` beyond
    /// the limits of a kernel or a text. A repeated value gets the number of its first place.
    fn numbers(&self, next: u32, first_of: &[usize]) -> Vec<Option<u16>> {
        let mut numbers = vec![None; self.all.len()];
        let mut next = (next..=u32::from(MAX_SITE)).map_while(|number| u16::try_from(number).ok());
        let is_value = |index: &usize| matches!(self.all[*index].what, What::Value(_));
        let is_recorded = |index: &usize| self.all[*index].follows.is_none() && first_of[*index] == *index;
        let recorded = (0..self.all.len()).filter(is_recorded);
        let (values, others): (Vec<usize>, Vec<usize>) = recorded.partition(is_value);
        for index in values.into_iter().chain(others).take(MAX_KERNEL_SITES) {
            numbers[index] = next.next();
        }
        for (index, first) in first_of.iter().enumerate() {
            numbers[index] = numbers[*first];
        }
        for (index, place) in self.all.iter().enumerate() {
            if let Some(Follows { root, .. }) = place.follows {
                numbers[index] = numbers[root].and_then(|_| next.next());
            }
        }
        numbers
    }
}

/// Finds the requested accesses of a function, numbered from `next`. `location` gives a block's location.
pub(super) fn find(
    function: &Function<'_>,
    body: &Body<'_>,
    flow: &Cfg,
    (spaces, next): (Spaces, u32),
    lines: &Lines,
    location: impl Fn(usize) -> u16,
) -> FoundSites {
    let places = Places::new(function, body, flow, spaces);
    let first_of = places.first_of_values(lines);
    let numbers = places.numbers(next, &first_of);
    let name: Arc<str> = function.name.into();
    let mut found = FoundSites::default();
    for ((index, place), id) in places.all.iter().enumerate().zip(&numbers) {
        let &AccessPlace { access, what, statement, ref operand, guard, .. } = place;
        let Some(id) = *id else { continue };
        let at = body.statements[statement].span.start;
        if first_of[index] != index {
            let marker = DataMarker { site: id, operand, guard: None, root: None }.to_string();
            found.copies.push((at, marker));
            let first = found.sites.iter_mut().find(|found| found.site.id == id);
            if let Some(first) = first.filter(|first| first.site.location != location(place.block)) {
                // The value's places have different locations.
                first.site.location = 0;
            }
            continue;
        }
        let derived = place.follows.and_then(|Follows { root, offset, is_narrow }| {
            Some(Derived { root: numbers[root]?, offset, is_narrow })
        });
        let root = derived.map(|derived| derived.root);
        let (source, inlined_at) = lines.first_of(statement..statement + 1);
        let (cache, value) = match what {
            What::Instruction(found) => (found.modifiers().find(|modifier| CACHE.contains(modifier)), None),
            What::Value(marker) => (None, Some(SiteValue::new(&marker))),
        };
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
            // Set when all offsets are known.
            ptx_line: 0,
            ptx_column: 0,
            source,
            inlined_at,
            derived,
            value,
        };
        let marker = DataMarker { site: id, operand, guard, root }.to_string();
        found.sites.push(MarkedSite { site, at, marker });
    }
    found.sites.sort_by_key(|found| found.site.id);
    let too_many = places.all.len() - found.sites.len() - found.copies.len();
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
        found.unrecorded.push(format!("{count} of its accesses are not recorded: {first}"));
    }
    found
}
