//! The kernels' code on the GPU: untraced as it was compiled, and traced copies with recording sequences.

use std::collections::HashMap;
use std::ffi::CString;

use cudarc::driver::{result, sys};
use warptrace_ptx::splice::{self, Options, Placement, Spliced, splice};

use super::driver::{self, Called};
use crate::{Choosing, DeviceError, LaunchShape, Recording};

/// Names the environment variable that has hardware counters count at each trace point (`pmevent`), in all
/// kernels that are loaded. `warptrace-bench fidelity` sets it.
pub const MARKS_VARIABLE: &str = "WARPTRACE_MARKS";

/// The least that a traced kernel may have: a multiprocessor then holds 32 warps.
const MIN_REGISTER_LIMIT: u32 = 64;
/// The most that a thread can have.
const MAX_REGISTERS: u32 = 255;

/// Answers how many registers a traced kernel may have whose untraced one takes so many: as many, and at
/// least so many that a multiprocessor holds half of the warps that it can.
pub fn traced_registers(untraced: u32) -> u32 {
    untraced.next_multiple_of(8).clamp(MIN_REGISTER_LIMIT, MAX_REGISTERS)
}

/// How a kernel is recorded; the codec comes later, so it makes no difference here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Way {
    recording: splice::Recording,
    placement: Option<Placement>,
    chooses: Choosing,
    ring: bool,
    streamed: bool,
    open_runs: bool,
}

impl Way {
    pub(super) fn of(recording: Recording, placement: Option<Placement>, chooses: Choosing) -> Self {
        let Recording { counting, dual, .. } = recording;
        let recording = splice::Recording { counting, dual };
        Self { recording, placement, chooses, ring: false, streamed: false, open_runs: false }
    }

    /// The same with logs that are rings.
    pub(super) fn ring(recording: Recording, placement: Option<Placement>, chooses: Choosing) -> Self {
        Self { ring: true, ..Self::of(recording, placement, chooses) }
    }

    /// The same with streamed logs, and in these runs that have not ended, if `open_runs`.
    pub(super) fn streamed(
        recording: Recording,
        placement: Option<Placement>,
        chooses: Choosing,
        open_runs: bool,
    ) -> Self {
        Self { streamed: true, open_runs, ..Self::of(recording, placement, chooses) }
    }
}

/// A traced kernel.
#[derive(Clone, Copy)]
pub(super) struct Traced {
    pub(super) function: sys::CUfunction,
    /// Bytes that each warp of a block needs at the end of dynamic shared memory.
    pub(super) shared_bytes: u32,
}

impl Traced {
    /// Bytes of dynamic shared memory that a launch needs, the kernel's own included.
    pub(super) fn dynamic_shared(self, shape: &LaunchShape) -> u64 {
        let own = u64::from(shape.dynamic_shared);
        match self.shared_bytes {
            0 => own,
            each => own.next_multiple_of(16) + shape.warps_per_block() * u64::from(each),
        }
    }
}

/// The kernels that a binary carries, as far as they are loaded.
pub(super) struct Code {
    /// Texts of PTX; each kernel is an entry of one of them.
    texts: Vec<&'static str>,
    /// 90 for `sm_90`.
    architecture: u32,
    marks: bool,
    modules: Vec<sys::CUmodule>,
    untraced: HashMap<String, sys::CUfunction>,
    traced: HashMap<(String, Way), Traced>,
}

impl Code {
    pub(super) fn new(ptx: &'static str, architecture: u32) -> Self {
        let marks = std::env::var_os(MARKS_VARIABLE).is_some_and(|value| !value.is_empty() && value != "0");
        Self {
            texts: Vec::from_iter((!ptx.is_empty()).then_some(ptx)),
            architecture,
            marks,
            modules: Vec::new(),
            untraced: HashMap::new(),
            traced: HashMap::new(),
        }
    }

    /// Adds a text, if it is a new one with something in it.
    pub(super) fn add(&mut self, ptx: &'static str) {
        let is_there = |text: &&str| std::ptr::eq(*text, ptx) || *text == ptx;
        if !ptx.is_empty() && !self.texts.iter().any(is_there) {
            self.texts.push(ptx);
        }
    }

    /// Loads those of `kernels` that are not there yet: from each text one module, with an untraced entry of
    /// each of its kernels and, where they are to be recorded, a traced one.
    pub(super) fn load(&mut self, kernels: &[&str], way: Option<Way>) -> Result<(), DeviceError> {
        if self.texts.is_empty() {
            return Err(DeviceError::NoDeviceCode);
        }
        // The text that was added last has a kernel, where several do; the first says that none does.
        let text_of = |kernel: &&str| {
            let has = |text: &&str| has_entry(text, kernel);
            self.texts.iter().rposition(has).unwrap_or(0)
        };
        let texts: Vec<usize> = kernels.iter().map(text_of).collect();
        for (number, ptx) in self.texts.clone().into_iter().enumerate() {
            let own = kernels.iter().zip(&texts).filter(|(_, text)| **text == number);
            let own: Vec<&str> = own.map(|(kernel, _)| *kernel).collect();
            self.load_from(ptx, &own, way)?;
        }
        Ok(())
    }

    fn load_from(&mut self, ptx: &str, kernels: &[&str], way: Option<Way>) -> Result<(), DeviceError> {
        let is_there = |kernel: &&str| match way {
            None => self.untraced.contains_key(*kernel),
            Some(way) => self.traced.contains_key(&((*kernel).to_owned(), way)),
        };
        let kernels: Vec<&str> = kernels.iter().copied().filter(|kernel| !is_there(kernel)).collect();
        if kernels.is_empty() {
            return Ok(());
        }
        let limits = match way {
            Some(_) => self.register_limits(&kernels)?,
            None => Vec::new(),
        };
        let options = Options {
            kernels: Some(&kernels),
            recording: way.map(|way| way.recording),
            ring: way.is_some_and(|way| way.ring),
            streamed: way.is_some_and(|way| way.streamed),
            open_runs: way.is_some_and(|way| way.open_runs),
            placement: way.and_then(|way| way.placement),
            registers: &limits,
            architecture: self.architecture,
            marks: self.marks,
            chooses: way.is_some_and(|way| way.chooses.warps),
            after: way.and_then(|way| way.chooses.after),
        };
        let Spliced { text, kernels: traced } = splice(ptx, &options)
            .map_err(|source| DeviceError::Splice { kernels: kernels.join(", "), source })?;
        let module = driver::load_ptx(&kernels.join(", "), &text)?;
        self.modules.push(module);
        for kernel in kernels {
            // From now on the untraced kernel is that of the module with the traced one: they share its
            // variables.
            self.untraced.insert(kernel.to_owned(), function(module, kernel)?);
        }
        if let Some(way) = way {
            for kernel in traced {
                let loaded = Traced {
                    function: function(module, &kernel.traced_name)?,
                    shared_bytes: kernel.shared_bytes,
                };
                self.traced.insert((kernel.name, way), loaded);
            }
        }
        Ok(())
    }

    /// Asks how many registers the untraced kernels take, and answers how many the traced ones may have.
    fn register_limits<'k>(&mut self, kernels: &[&'k str]) -> Result<Vec<(&'k str, u32)>, DeviceError> {
        use sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_NUM_REGS;
        self.load(kernels, None)?;
        let limit = |kernel: &&'k str| {
            // SAFETY: the function is loaded.
            let taken = unsafe {
                result::function::get_function_attribute(self.untraced[*kernel], CU_FUNC_ATTRIBUTE_NUM_REGS)
            };
            let taken = taken.called_for("cuFuncGetAttribute(NUM_REGS)", kernel)?;
            Ok((*kernel, traced_registers(u32::try_from(taken).unwrap_or(0))))
        };
        kernels.iter().map(limit).collect()
    }

    /// The untraced kernel, loaded when it is first asked for.
    pub(super) fn untraced(&mut self, kernel: &str) -> Result<sys::CUfunction, DeviceError> {
        self.load(&[kernel], None)?;
        Ok(self.untraced[kernel])
    }

    /// The traced kernel, loaded when it is first asked for.
    pub(super) fn traced(&mut self, kernel: &str, way: Way) -> Result<Traced, DeviceError> {
        self.load(&[kernel], Some(way))?;
        Ok(self.traced[&(kernel.to_owned(), way)])
    }

    /// Unloads everything.
    ///
    /// # Safety
    /// No kernel of it runs or will.
    pub(super) unsafe fn unload(&mut self) {
        for module in self.modules.drain(..) {
            // Errors have nowhere to go. SAFETY: loaded here, and no longer used.
            let _ = unsafe { result::module::unload(module) };
        }
    }
}

/// Whether a text has this entry.
fn has_entry(ptx: &str, kernel: &str) -> bool {
    ptx.match_indices(".entry").any(|(at, word)| {
        let name = ptx[at + word.len()..].trim_start().strip_prefix(kernel);
        name.is_some_and(|rest| rest.starts_with(['(', ' ', '\n', '\t', '\r']))
    })
}

/// A function of a loaded module.
pub(super) fn function(module: sys::CUmodule, kernel: &str) -> Result<sys::CUfunction, DeviceError> {
    let name = CString::new(kernel).map_err(|_| DeviceError::Shape {
        kernel: kernel.to_owned(),
        problem: "the name contains a zero byte".to_owned(),
    })?;
    // SAFETY: the module is loaded.
    unsafe { result::module::get_function(module, name) }.called_for("cuModuleGetFunction", kernel)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_found_by_their_whole_name() {
        let ptx = ".visible .entry halve(\n.param .u64 a)\n{}\n.visible .entry twice\n(){}\n// .entry";
        for (name, found) in
            [("halve", true), ("twice", true), ("halv", false), ("thrice", false), ("a", false)]
        {
            assert_eq!(has_entry(ptx, name), found, "{name}");
        }
    }

    #[test]
    fn a_text_is_added_once_and_an_empty_one_never() {
        let mut code = Code::new("", 90);
        assert!(matches!(code.load(&["k"], None), Err(DeviceError::NoDeviceCode)));
        for text in ["a", "", "b", "a"] {
            code.add(text);
        }
        assert_eq!(code.texts, ["a", "b"]);
    }
}
