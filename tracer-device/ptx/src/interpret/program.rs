//! Modules in the form that the interpreter executes.

use std::collections::{BTreeMap, HashMap};

use super::InterpretError;
use super::decode::{Decoder, decode};
use super::error::Fault;
use super::initial;
use super::op::{FUNCTIONS, Memory, Op, Predicate, Register, VARIABLES};
use super::operand::operand_of;
use crate::cfg::labels::resolve;
use crate::points::params::elements_of;
use crate::registers::{bits, numbered};
use crate::splice::{DataMarker, Marker};
use crate::uniform::divergence::Graph;
use crate::{
    Body, Cfg, Declaration, Directive, Function, Instruction, Linkage, Module, Param, Space, StatementKind,
};

/// Maximum size in bytes of a function's parameters or local variables, or of a module's shared variables.
const MAX_BYTES: usize = 1 << 20;
/// Alignment of variables in bytes.
const ALIGN: usize = 16;

/// A module, ready to be interpreted.
#[derive(Clone, Debug)]
pub struct Program {
    pub(super) functions: Vec<Code>,
    /// Size of shared variables in bytes. Dynamic shared memory begins after them.
    pub(super) shared_bytes: usize,
    /// Addresses and initial values of the module's variables in global and constant memory.
    pub(super) variables: Vec<(u64, Vec<u8>)>,
    variable_names: Vec<String>,
}

#[derive(Clone, Debug)]
pub(super) struct Code {
    pub(super) name: String,
    pub(super) is_entry: bool,
    pub(super) items: Vec<Item>,
    pub(super) registers: Vec<String>,
    pub(super) bits: Vec<u32>,
    /// Offsets and sizes of the function's parameters.
    pub(super) parameters: Vec<(usize, usize)>,
    pub(super) results: Vec<(usize, usize)>,
    pub(super) parameter_bytes: usize,
    pub(super) local_bytes: usize,
}

/// A statement that the interpreter executes or observes.
#[derive(Clone, Debug)]
pub(super) enum Item {
    /// A label. Groups may join at labels of the program, and at labels of sequences with the meeting suffix.
    Label {
        joins: bool,
        block: usize,
    },
    Marker(Marker),
    /// A data marker that names a register: site, register, and predicate with its negation.
    Value {
        site: u16,
        register: Register,
        guard: Option<Predicate>,
    },
    Instruction(Box<Step>),
}

#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) line: usize,
    pub(super) text: String,
    /// The predicate, and whether it is negated.
    pub(super) guard: Option<Predicate>,
    pub(super) op: Result<Op, Fault>,
    /// The reconvergence block of a branch.
    pub(super) meets: Option<usize>,
    pub(super) is_sequence: bool,
    /// Sites of the data markers before it, each with the index of its address operand.
    pub(super) sites: Vec<(u16, usize)>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Variable {
    pub(super) memory: Memory,
    pub(super) offset: usize,
    pub(super) bytes: usize,
    /// Whether it is the block's dynamic shared memory.
    pub(super) dynamic: bool,
}

/// Registers that instructions name, in the order of first use.
#[derive(Clone, Debug, Default)]
struct Used {
    names: Vec<String>,
    indices: HashMap<String, Register>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    /// Size in bits of declared registers, and N of `%r<N>`.
    declared: BTreeMap<String, (u32, Option<u32>)>,
    used: std::cell::RefCell<Used>,
    variables: BTreeMap<String, Variable>,
    functions: BTreeMap<String, u64>,
}

impl Names {
    pub(super) fn register(&self, name: &str) -> Option<(Register, u32)> {
        let bits = match self.declared.get(name) {
            Some((bits, None)) => *bits,
            _ => numbered(name).find_map(|(name, number)| {
                let (bits, count) = self.declared.get(name)?;
                count.filter(|count| number < *count).map(|_| *bits)
            })?,
        };
        let mut used = self.used.borrow_mut();
        let Used { names, indices } = &mut *used;
        let index = *indices.entry(name.to_owned()).or_insert_with(|| {
            names.push(name.to_owned());
            names.len() - 1
        });
        Some((index, bits))
    }

    pub(super) fn variable(&self, name: &str) -> Option<Variable> {
        self.variables.get(name).copied()
    }

    pub(super) fn function(&self, name: &str) -> Option<u64> {
        self.functions.get(name).copied()
    }
}

impl Program {
    /// Parses a module. Unsupported instructions are errors only when they are executed.
    ///
    /// # Errors
    /// Returns an [`InterpretError`] if the text is not valid PTX, or a variable cannot be laid out.
    pub fn parse(text: &str) -> Result<Self, InterpretError> {
        let module = Module::parse(text)?;
        let mut shared = BTreeMap::new();
        let mut shared_bytes = 0;
        for (_, declaration) in module.variables().filter(|(_, found)| found.space == Space::Shared) {
            if declaration.linkage != Linkage::Extern {
                declare(&mut shared, &mut shared_bytes, Memory::Shared, declaration)?;
            }
        }
        for function in module.definitions() {
            for declaration in body_variables(function.body.as_ref(), Space::Shared) {
                declare(&mut shared, &mut shared_bytes, Memory::Shared, declaration)?;
            }
        }
        shared_bytes = shared_bytes.next_multiple_of(ALIGN);
        for name in module.dynamic_shared() {
            let variable = Variable { memory: Memory::Shared, offset: shared_bytes, bytes: 0, dynamic: true };
            shared.insert(name.to_owned(), variable);
        }
        let addresses = (FUNCTIONS..).zip(module.definitions());
        let functions: BTreeMap<String, u64> =
            addresses.map(|(address, function)| (function.name.to_owned(), address)).collect();
        let mut names = Names { variables: shared, functions, ..Names::default() };
        let (variables, variable_names) = globals(&module, &mut names)?;
        let functions = module
            .definitions()
            .map(|function| Code::new(&module, function, &names))
            .collect::<Result<_, _>>()?;
        Ok(Self { functions, shared_bytes, variables, variable_names })
    }

    /// Returns the addresses of the module's variables in global and constant memory. Launches declare them.
    pub fn variables(&self) -> impl Iterator<Item = u64> {
        self.variables.iter().map(|(address, _)| *address)
    }

    /// Returns the address and size in bytes of a variable in global or constant memory.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<(u64, usize)> {
        let at = self.variable_names.iter().position(|known| known == name)?;
        self.variables.get(at).map(|(address, held)| (*address, held.len()))
    }

    /// Returns the kernels: name, and size in bytes of each parameter.
    pub fn kernels(&self) -> impl Iterator<Item = (&str, Vec<usize>)> {
        self.functions
            .iter()
            .filter(|code| code.is_entry)
            .map(|code| (code.name.as_str(), code.parameters.iter().map(|(_, bytes)| *bytes).collect()))
    }

    /// Returns the line, text and reason of each instruction that the interpreter cannot execute.
    #[must_use]
    pub fn unknown(&self) -> Vec<(usize, &str, &Fault)> {
        let items = self.functions.iter().flat_map(|function| &function.items);
        items
            .filter_map(|item| match item {
                Item::Instruction(step) => {
                    step.op.as_ref().err().map(|fault| (step.line, step.text.as_str(), fault))
                }
                _ => None,
            })
            .collect()
    }

    pub(super) fn function(&self, name: &str) -> Option<usize> {
        self.functions.iter().position(|function| function.name == name)
    }
}

impl Code {
    fn new(module: &Module<'_>, function: &Function<'_>, of_module: &Names) -> Result<Self, InterpretError> {
        let mut names = of_module.clone();
        let mut parameter_bytes = 0;
        let mut slots = |names: &mut Names, params: &[Param<'_>]| {
            params.iter().map(|param| parameter(names, &mut parameter_bytes, param)).collect::<Result<_, _>>()
        };
        let parameters = slots(&mut names, &function.params)?;
        let results = slots(&mut names, &function.returns)?;
        let mut local_bytes = 0;
        for declaration in body_variables(function.body.as_ref(), Space::Param) {
            declare(&mut names.variables, &mut parameter_bytes, Memory::Param, declaration)?;
        }
        for declaration in body_variables(function.body.as_ref(), Space::Local) {
            declare(&mut names.variables, &mut local_bytes, Memory::Local, declaration)?;
        }
        let statements = function.body.iter().flat_map(|body| &body.statements);
        for statement in statements {
            if let StatementKind::Directive(Directive::Registers(declaration)) = &statement.kind {
                registers(&mut names, declaration);
            }
        }
        let items = items(module, function, &names);
        let registers = names.used.take().names;
        let bits = registers.iter().map(|name| names.register(name).map_or(64, |(_, bits)| bits)).collect();
        let (name, is_entry) = (function.name.to_owned(), function.is_entry());
        Ok(Self { name, is_entry, items, registers, bits, parameters, results, parameter_bytes, local_bytes })
    }
}

fn items(module: &Module<'_>, function: &Function<'_>, names: &Names) -> Vec<Item> {
    let Some(body) = &function.body else { return Vec::new() };
    let mut items = Vec::new();
    // Maps statements of labels and instructions to their items.
    let mut item_of = BTreeMap::new();
    // Counts lines incrementally, not from the start of the text for each instruction.
    let (mut line, mut at) = (module.position(body.open).line, body.open);
    let decoder = Decoder { names, version: module.version() };
    let flow = Cfg::new(body).ok();
    let graph = flow.as_ref().and_then(Graph::new);
    let block_of = |statement| flow.as_ref().map_or(usize::MAX, |flow| flow.block_of(statement));
    // Data markers before their instruction. The sequences lie in between.
    let mut sites: Vec<DataMarker<'_>> = Vec::new();
    for (index, statement) in body.statements.iter().enumerate() {
        line += module.text[at..statement.span.start].matches('\n').count();
        at = statement.span.start;
        match &statement.kind {
            StatementKind::Label(label) if !label.names_directive => {
                item_of.insert(index, items.len());
                let joins = !label.name.starts_with(crate::splice::LABEL_PREFIX)
                    || label.name.ends_with(crate::splice::MEETING_SUFFIX);
                items.push(Item::Label { joins, block: block_of(index) });
            }
            StatementKind::Comment(text) => {
                if let Some(Ok(marker)) = Marker::parse(text) {
                    items.push(Item::Marker(marker));
                }
                if let Some(Ok(marker)) = DataMarker::parse(text) {
                    let guard = marker.guard.and_then(|guard| {
                        names.register(guard.predicate).map(|(register, _)| (register, guard.negated))
                    });
                    match names.register(marker.operand) {
                        Some((register, _)) => {
                            items.push(Item::Value { site: marker.site, register, guard });
                        }
                        None => sites.push(marker),
                    }
                }
            }
            StatementKind::Instruction(instruction) => {
                let text = statement.span.text(module.text).to_owned();
                item_of.insert(index, items.len());
                let mut step = step(&decoder, instruction, line, text);
                // A branch over a sequence's cold code names its label, not a `%wt_` register.
                if !step.is_sequence && !step.text.contains(crate::splice::LABEL_PREFIX) {
                    step.sites =
                        sites.drain(..).filter_map(|marker| operand_of(marker, instruction)).collect();
                }
                if matches!(instruction.name(), "bra" | "brx") {
                    step.meets = graph.as_ref().and_then(|graph| graph.meets_at(block_of(index)));
                }
                items.push(Item::Instruction(Box::new(step)));
            }
            _ => {}
        }
    }
    // If a label is missing, all branches become unknown instructions.
    let targets = resolve(body).ok();
    let branches = targets.as_ref().map(|targets| targets.branches.clone()).unwrap_or_default();
    for (index, item) in &item_of {
        let Item::Instruction(step) = &mut items[*item] else { continue };
        if let Ok(Op::BranchIndexed { table, to, .. }) = &mut step.op {
            let found = targets.as_ref().and_then(|targets| targets.table_of(*index, body));
            let items: Option<Vec<usize>> =
                found.and_then(|labels| labels.iter().map(|label| item_of.get(label).copied()).collect());
            match items {
                Some(items) => *to = items,
                None => step.op = Err(Fault::Unknown(format!("there is no table `{table}`"))),
            }
            continue;
        }
        if let Ok(Op::Branch { target, to, .. }) = &mut step.op {
            match branches.get(index).and_then(|label| item_of.get(label)) {
                Some(found) => *to = *found,
                None => step.op = Err(Fault::Unknown(format!("there is no label `{target}`"))),
            }
        }
    }
    items
}

fn step(decoder: &Decoder<'_>, instruction: &Instruction<'_>, line: usize, text: String) -> Step {
    let guard = instruction.guard.map(|guard| match decoder.names.register(guard.predicate) {
        Some((register, 1)) => Ok((register, guard.negated)),
        _ => Err(Fault::Unknown(format!("`{}` is no declared predicate", guard.predicate))),
    });
    let is_sequence = text.contains(crate::splice::REGISTER_PREFIX);
    let (guard, op) = match guard.transpose() {
        Ok(guard) => (guard, decode(decoder, instruction).map_err(Fault::Unknown)),
        Err(fault) => (None, Err(fault)),
    };
    Step { line, text, guard, op, meets: None, is_sequence, sites: Vec::new() }
}

fn body_variables<'a>(body: Option<&'a Body<'a>>, space: Space) -> impl Iterator<Item = &'a Declaration<'a>> {
    let statements = body.into_iter().flat_map(|body| &body.statements);
    statements.filter_map(move |statement| match &statement.kind {
        StatementKind::Directive(Directive::Variable(declaration)) if declaration.space == space => {
            Some(declaration)
        }
        _ => None,
    })
}

/// Declares registers. Scopes are ignored: all registers belong to the whole function.
fn registers(names: &mut Names, declaration: &Declaration<'_>) {
    let bits = bits(declaration.ty).unwrap_or_default();
    for declared in &declaration.names {
        names.declared.insert(declared.name.to_owned(), (bits, declared.count));
    }
}

/// Lays out variables after the previous ones. Equal names in several scopes share the largest one's memory.
fn declare(
    variables: &mut BTreeMap<String, Variable>,
    end: &mut usize,
    memory: Memory,
    declaration: &Declaration<'_>,
) -> Result<(), InterpretError> {
    for declared in &declaration.names {
        let bytes = bytes(declared.name, declaration.ty, declared.dimensions)?;
        if variables.get(declared.name).is_some_and(|known| known.memory == memory && known.bytes >= bytes) {
            continue;
        }
        let offset = reserve(declared.name, end, bytes)?;
        variables.insert(declared.name.to_owned(), Variable { memory, offset, bytes, dynamic: false });
    }
    Ok(())
}

/// Lays out the module's variables in global and constant memory; returns their initial values and names.
#[expect(clippy::type_complexity, reason = "two fields of a program")]
fn globals(
    module: &Module<'_>,
    names: &mut Names,
) -> Result<(Vec<(u64, Vec<u8>)>, Vec<String>), InterpretError> {
    let in_memory = |space| matches!(space, Space::Global | Space::Const);
    let mut end = 0;
    let mut texts = Vec::new();
    for (span, declaration) in module.variables().filter(|(_, found)| in_memory(found.space)) {
        for declared in &declaration.names {
            let dimensions = declared.dimensions.filter(|dimensions| !dimensions.starts_with("[]"));
            if declared.dimensions.is_some() && dimensions.is_none() {
                continue;
            }
            let Ok(bytes) = bytes(declared.name, declaration.ty, dimensions) else { continue };
            let offset = VARIABLES as usize + reserve(declared.name, &mut end, bytes)?;
            let variable = Variable { memory: Memory::Global, offset, bytes, dynamic: false };
            names.variables.insert(declared.name.to_owned(), variable);
            let value =
                declared.initialized.then(|| span.text(module.text)).and_then(|text| text.split_once('='));
            texts.push((declared.name, declaration.ty, offset as u64, bytes, value.map(|(_, value)| value)));
        }
    }
    let filled = |(name, ty, address, bytes, value): (&str, &str, u64, usize, Option<&str>)| {
        let held = value.map_or(Some(vec![0; bytes]), |value| initial::bytes(names, ty, bytes, value));
        Ok((
            address,
            held.ok_or_else(|| problem(name, "its value is of a kind that is not known".to_owned()))?,
        ))
    };
    let of = texts.iter().map(|(name, ..)| (*name).to_owned()).collect();
    Ok((texts.into_iter().map(filled).collect::<Result<_, InterpretError>>()?, of))
}

fn parameter(
    names: &mut Names,
    end: &mut usize,
    param: &Param<'_>,
) -> Result<(usize, usize), InterpretError> {
    let bytes = bytes(param.name, param.ty, param.dimensions)?;
    let offset = reserve(param.name, end, bytes)?;
    let variable = Variable { memory: Memory::Param, offset, bytes, dynamic: false };
    names.variables.insert(param.name.to_owned(), variable);
    Ok((offset, bytes))
}

fn reserve(name: &str, end: &mut usize, bytes: usize) -> Result<usize, InterpretError> {
    let offset = end.next_multiple_of(ALIGN);
    *end = offset.saturating_add(bytes);
    if *end <= MAX_BYTES { Ok(offset) } else { Err(problem(name, format!("more than {MAX_BYTES} bytes"))) }
}

fn bytes(name: &str, ty: &str, dimensions: Option<&str>) -> Result<usize, InterpretError> {
    let (element, elements) = elements_of(ty, dimensions).map_err(|reason| problem(name, reason))?;
    Ok(usize::try_from(element.saturating_mul(elements)).unwrap_or(usize::MAX))
}

fn problem(name: &str, problem: String) -> InterpretError {
    InterpretError::Declaration { name: name.to_owned(), problem }
}
