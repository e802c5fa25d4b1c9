//! Replaces markers by instructions that record.
//!
//! A kernel is compiled once, with a comment at each trace point (see [`Marker`]). Untraced launches run this
//! text; the assembler ignores comments. For tracing, [`splice`] adds a copy of each kernel. Its name is the
//! kernel's name with the suffix [`TRACED_SUFFIX`], and it has
//! - an additional parameter, the launch's logs (`warptrace_abi::log::LaunchLogs`),
//! - a prologue, which sets up the lane's logs,
//! - a recording sequence at each marker,
//! - an epilogue before each `ret` and `exit`.
//!
//! Functions that contain markers, or lead to such functions, are copied too. If a launch
//! [chooses](Recording::chooses) the warps that record, the copy also contains the kernel's original
//! instructions, in a separate scope at its end. Warps that are not chosen branch there. So the traced kernel
//! contains the optimiser's output, which does not depend on the tracer: a source line may occur at several
//! places (as in an unrolled loop), and a branch that became a select is no branch.

mod code;
mod copies;
mod emit;
mod error;
mod exits;
mod header;
mod limits;
mod marks;
mod options;
mod parallel;
mod plan;
mod proof;
mod sites;
mod state;
mod style;
mod unchosen;

use std::collections::HashMap;

use warptrace_format::Counting;

pub use self::code::{CodeAt, code_at};
use self::emit::{DYNAMIC_SHARED, Emitter, LAUNCH_PARAMETER};
pub use self::error::SpliceError;
use self::limits::{limit_registers, moves_registers};
use self::marks::{delay, mark};
pub use self::options::{Options, Spliced, TracedKernel};
pub(crate) use self::plan::PARTING;
use self::plan::{Callees, Plan, named, recording_functions};
pub(crate) use self::sites::DataSource;
use self::state::{descriptor_bytes, warp_bytes};
use self::style::{Claim, Style, waits_or_calls};
use crate::lexer::{Lexer, TokenKind};
use crate::waiting::without_waits;
use crate::{Edits, Function, FunctionKind, Module};
pub use warptrace_abi::marker::{DataMarker, Marker};
pub use warptrace_abi::recording::{LogKind, Placement, Recording};

/// Suffix of the names of traced copies.
pub const TRACED_SUFFIX: &str = "$traced";
/// Prefix of the registers of sequences.
pub(crate) const REGISTER_PREFIX: &str = "%wt_";
/// Prefix of the labels of sequences.
pub(crate) const LABEL_PREFIX: &str = "$warptrace_";
/// Suffix of labels where lanes may reconverge that arrived there separately.
pub(crate) const MEETING_SUFFIX: &str = "_meeting";

/// Adds traced copies of kernels to a module, and removes kernels that are not requested. A kernel or
/// function without markers whose control flow cannot be read gets no copy. PTX versions before 6.2 are
/// raised to 6.2, and architectures before `sm_30` to `sm_30`. Markers at waits that were not turned into
/// [events](crate::points::with_waits) are removed.
///
/// # Errors
/// Returns a [`SpliceError`] if the text is not valid PTX or uses a reserved name, a marker cannot be read, a
/// kernel is missing or cannot be traced, or the architecture or the module does not allow the recording.
pub fn splice(text: &str, options: &Options<'_>) -> Result<Spliced, SpliceError> {
    let text = &*without_waits(text);
    let module = Module::parse(text)?;
    let counting = options.recording.map_or(Counting::Never, |recording| recording.counted());
    if counting == Counting::All && options.recording.is_some_and(|recording| recording.after.is_some()) {
        return Err(SpliceError::After);
    }
    if let Some(recording) = options.recording {
        sites::check(recording)?;
        header::check(&module, recording)?;
        for name in [LAUNCH_PARAMETER, DYNAMIC_SHARED, REGISTER_PREFIX, LABEL_PREFIX, TRACED_SUFFIX] {
            if text.contains(name) && has_word(text, name) {
                return Err(SpliceError::Reserved { name });
            }
        }
    }
    let definitions = module.definitions().filter_map(|function| Some((function, function.body.as_ref()?)));
    let definitions: Vec<_> = definitions.collect();
    let plans = parallel::each(&definitions, &mut String::new(), |(function, body), _| {
        let mut plan = Plan::new(&module, function, body, counting)?;
        if options.recording.is_some_and(|recording| recording.has_data()) {
            (plan.data, plan.sites) = sites::find(&module, function, body)?;
            if !plan.data.is_empty() && !function.is_entry() {
                return Err(SpliceError::DataInFunction { function: function.name.to_owned() });
            }
        }
        Ok((*function, plan))
    })?;
    check_kernels(&module, options.kernels)?;
    let wanted =
        |function: &Function<'_>| options.kernels.is_none_or(|kernels| kernels.contains(&function.name));
    let registers = options.registers.iter().copied().collect();
    let mut edits = Edits::new();
    for function in &module.functions {
        if function.is_entry() && !wanted(function) {
            edits.replace(function.span, "");
        }
    }
    if options.recording.is_none() {
        let kernels = module.definitions().filter(|function| function.is_entry() && wanted(function));
        for kernel in kernels {
            limit_registers(&mut edits, kernel, 0, &registers, options.limits_bounded);
        }
    }
    for (function, plan) in plans.iter().filter(|(function, _)| !function.is_entry() || wanted(function)) {
        let Some(body) = &function.body else { continue };
        mark(&mut edits, body, 0, plan, options.marks);
        if function.is_entry() {
            delay(&mut edits, body, 0, options.delay);
        }
    }
    let mut left_out = Vec::new();
    let entries = module.definitions().filter(|function| function.is_entry() && wanted(function));
    for (kernel, recording) in entries.filter_map(|kernel| Some((kernel, options.recording?))) {
        match too_large(&module, kernel, recording.chooses) {
            Some(reason) if options.kernels.is_some() => {
                return Err(SpliceError::LeftOut { kernel: kernel.name.to_owned(), reason });
            }
            Some(reason) => left_out.push((kernel.name.to_owned(), reason)),
            None => {}
        }
    }
    let mut kernels = Vec::new();
    let mut spliced = String::new();
    if let Some(recording) = options.recording {
        header::raise(&module, recording, &mut edits);
        let callees = recording_functions(&module, &plans);
        let sync = module.version() > (6, 3);
        let recording = Recording { counting, ..recording };
        let apart = header::lanes_run_apart(&module);
        let splicer = Splicer { module: &module, callees, recording, options, registers, sync, apart };
        let functions = plans.iter().filter(|(function, _)| splicer.callees.contains_key(function.name));
        let mut definitions = String::new();
        let mut prototypes = String::new();
        for (function, plan) in functions {
            prototypes.push_str(&splicer.prototype(function));
            splicer.function(function, plan, &mut definitions)?;
        }
        let traced = |(function, plan): &&(&Function<'_>, Plan)| {
            function.is_entry()
                && wanted(function)
                && !plan.unreadable
                && !left_out.iter().any(|(name, _)| name == function.name)
        };
        let traced: Vec<_> = plans.iter().filter(traced).collect();
        let mut is_shared = !splicer.callees.is_empty();
        for (function, _) in &traced {
            is_shared |= splicer.placement(function)?.0 == Placement::Shared;
        }
        // Functions that record use it too, even if no kernel calls them.
        if is_shared {
            let array = format!("\n.extern .shared .align 16 .b8 {DYNAMIC_SHARED}[];\n");
            edits.insert(module.header_end, array);
        }
        edits.apply_to(text, &mut spliced)?;
        spliced.push_str(&prototypes);
        spliced.push_str(&definitions);
        let kernel =
            |(function, plan): &&(&Function<'_>, Plan), out: &mut String| splicer.kernel(function, plan, out);
        kernels = parallel::each(&traced, &mut spliced, kernel)?;
    } else {
        edits.apply_to(text, &mut spliced)?;
    }
    // The text may be long. The spare byte is for callers that append a zero byte.
    spliced.reserve(1);
    spliced.shrink_to(spliced.len() + 1);
    Ok(Spliced { text: spliced, kernels, left_out })
}

fn check_kernels(module: &Module<'_>, kernels: Option<&[&str]>) -> Result<(), SpliceError> {
    let known: Vec<&str> =
        module.definitions().filter(|found| found.is_entry()).map(|found| found.name).collect();
    match kernels.unwrap_or_default().iter().find(|name| !known.contains(name)) {
        None => Ok(()),
        Some(name) => Err(SpliceError::NoKernel { name: (*name).to_owned(), known: known.join(", ") }),
    }
}

impl Function<'_> {
    /// Returns true if this is a kernel.
    #[must_use]
    pub fn is_entry(&self) -> bool {
        self.kind == FunctionKind::Entry
    }
}

/// The first architecture whose assembler adds no `YIELD` to a loop that reserves a segment ([`Claim`]).
const FIRST_WITHOUT_YIELD: u32 = 90;

/// Maximum size of a kernel's parameters in bytes, from PTX 8.1 on and before.
const MOST_PARAMETERS: [usize; 2] = [32_764, 4_352];

/// Returns the reason if a traced copy of a kernel has too large parameters.
fn too_large(module: &Module<'_>, kernel: &Function<'_>, chooses: bool) -> Option<String> {
    let params = crate::points::params::layout(&kernel.params).ok()?;
    let end = params.last().map_or(0, |last| last.offset + last.size);
    let needed = end.next_multiple_of(8) + descriptor_bytes(chooses) as usize;
    let most = MOST_PARAMETERS[usize::from(module.version() < (8, 1))];
    (needed > most).then(|| {
        format!(
            "its parameters take {end} bytes, which leaves no room for the recorder's: {needed} of {most}"
        )
    })
}

/// Returns true if a word of the text contains a name. Comments and strings are ignored.
fn has_word(text: &str, name: &str) -> bool {
    let mut lexer = Lexer::new(text);
    loop {
        let token = lexer.next();
        match token.kind {
            TokenKind::End => return false,
            TokenKind::Word | TokenKind::Dot if token.span.text(text).contains(name) => return true,
            _ => {}
        }
    }
}

/// Emits the sequence of a marker. `loops` are counted.
fn sequence_of(emitter: &mut Emitter, place: &plan::MarkerPlace, loops: &[u16]) {
    let is_counted = |location: u16| loops.binary_search(&location).is_ok();
    match place.marker {
        Marker::Enter(location) if is_counted(location) => emitter.loop_enter(location),
        Marker::Leave(location) if is_counted(location) => emitter.loop_leave(location),
        Marker::Tick(location, _) if is_counted(location) && place.count != 0 => {
            emitter.loop_tick(location, place.count);
        }
        Marker::Event(location) | Marker::Tick(location, _) if place.count != 0 => {
            emitter.events(location, place.count);
        }
        _ => {}
    }
}

struct Splicer<'a> {
    module: &'a Module<'a>,
    /// Functions that record, kernels excluded. Calls are redirected to their copies.
    callees: Callees<'a>,
    recording: Recording,
    options: &'a Options<'a>,
    /// [`Options::registers`] by name.
    registers: HashMap<&'a str, u32>,
    sync: bool,
    apart: bool,
}

impl Splicer<'_> {
    /// Returns the placement of a kernel's records, and whether it calls functions that record.
    fn placement(&self, function: &Function<'_>) -> Result<(Placement, bool), SpliceError> {
        let body = function.body.as_ref();
        let calls = body.and_then(|body| named(body, &self.callees).pop_first());
        let placement = match (self.recording.placement, calls) {
            (None | Some(Placement::Shared), Some(_)) => Placement::Shared,
            (Some(placement), None) => placement,
            // Such a kernel's warps keep few registers.
            (None, None) if body.is_some_and(moves_registers) => Placement::Local,
            (None, None) => Placement::Registers,
            (Some(placement), Some(name)) => {
                let (kernel, function) = (function.name.to_owned(), name.to_owned());
                return Err(SpliceError::Placement { kernel, function, placement });
            }
        };
        Ok((placement, calls.is_some()))
    }

    fn kernel(
        &self,
        function: &Function<'_>,
        plan: &Plan,
        out: &mut String,
    ) -> Result<TracedKernel, SpliceError> {
        let (placement, with_descriptor) = self.placement(function)?;
        let style = self.style(function, plan, placement, with_descriptor);
        self.copy(function, plan, style, out)?;
        let shared_bytes = match placement {
            Placement::Shared => warp_bytes(self.recording.dual, with_descriptor, self.recording.chooses),
            _ => 0,
        };
        Ok(TracedKernel {
            name: function.name.to_owned(),
            traced_name: format!("{}{TRACED_SUFFIX}", function.name),
            placement,
            shared_bytes,
            markers: plan.places.iter().filter(|place| place.count != 0).count(),
            sites: plan.data.len(),
            counted: plan.loops.clone(),
        })
    }

    fn function(&self, function: &Function<'_>, plan: &Plan, out: &mut String) -> Result<(), SpliceError> {
        let style = self.style(function, plan, Placement::Shared, true);
        self.copy(function, plan, style, out)
    }

    fn style(
        &self,
        function: &Function<'_>,
        plan: &Plan,
        placement: Placement,
        with_descriptor: bool,
    ) -> Style {
        let counting = self.recording.counting;
        let counted = if plan.loops.is_empty() { Counting::Never } else { counting };
        let claim = match function.body.as_ref().is_some_and(waits_or_calls) {
            false if self.options.architecture >= FIRST_WITHOUT_YIELD => Claim::Plain,
            _ => Claim::OwnLoop,
        };
        Style {
            recording: Recording { counting: counted, ..self.recording },
            placement,
            sync: self.sync,
            apart: self.apart,
            is_entry: function.is_entry(),
            with_descriptor,
            claim,
            // Functions would read the record with a different key for this location.
            hot: if with_descriptor { None } else { plan.hot(counting) },
            sites: plan.sites,
        }
    }

    fn prototype(&self, function: &Function<'_>) -> String {
        let end = function.body.as_ref().map_or(function.span.end, |body| body.open);
        let text = self.module.text;
        let before = &text[function.span.start..function.name_span.end];
        format!("\n{before}{TRACED_SUFFIX}{};\n", text[function.name_span.end..end].trim_end())
    }
}
