//! Kernel code on the GPU: untraced kernels as compiled, and traced copies with recording sequences.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ffi::CString;

use cudarc::driver::{result, sys};
use warptrace_abi::shared::dynamic_shared;
use warptrace_device::{KernelCall, KernelModule};
use warptrace_format::file::SiteInfo;
use warptrace_ptx::points::{PointOptions, Site, mark_accesses, with_waits};
use warptrace_ptx::splice::{Options, Recording, Spliced, splice};

use super::driver::{self, Called};
use crate::{DeviceError, LaunchShape, Spaces, site_info, value_info};

/// Environment variable that makes hardware counters count trace points (`pmevent`), in all loaded kernels.
/// Its value is the number of instructions per event: only the first one is counted. `+N` after it adds N
/// uncounted instructions at the start of each untraced kernel. `warptrace-bench fidelity` sets it.
pub const MARKS_VARIABLE: &str = "WARPTRACE_MARKS";

/// Environment variable that, if set to 1, gives untraced kernels the register limit of traced ones, to
/// compare both at the same limit. `warptrace-bench whole` sets it.
pub const REGISTERS_VARIABLE: &str = "WARPTRACE_UNTRACED_REGISTERS";

/// Lowest register limit of a traced kernel: a multiprocessor then holds 32 warps.
const MIN_REGISTER_LIMIT: u32 = 64;
const MAX_REGISTERS: u32 = 255;

/// Returns the register limit of a traced kernel: `untraced` rounded up to a multiple of 8, from 64 to 255.
pub fn traced_registers(untraced: u32) -> u32 {
    untraced.next_multiple_of(8).clamp(MIN_REGISTER_LIMIT, MAX_REGISTERS)
}

#[derive(Clone, Copy)]
pub(super) struct Traced {
    pub(super) function: sys::CUfunction,
    /// Bytes that each warp of a block needs at the end of dynamic shared memory.
    pub(super) shared_bytes: u32,
}

impl Traced {
    /// Returns the dynamic shared memory of a launch in bytes, including the kernel's own.
    pub(super) fn dynamic_shared(self, shape: &LaunchShape) -> u64 {
        dynamic_shared(shape.dynamic_shared, shape.warps_per_block(), self.shared_bytes)
    }
}

/// The PTX texts of a binary, and the kernels loaded from them.
pub(super) struct Code {
    /// PTX texts. Several may contain a kernel of the same name, so a kernel is identified by text and name.
    texts: Vec<&'static str>,
    /// Whether the device was opened with the first text.
    has_own: bool,
    with_values: Vec<KernelModule>,
    without: Vec<KernelModule>,
    architecture: u32,
    /// Instructions that mark an event, and that delay an untraced kernel ([`MARKS_VARIABLE`]).
    marks: [u32; 2],
    /// Whether untraced kernels get the register limit of traced ones ([`REGISTERS_VARIABLE`]).
    limits_untraced: bool,
    modules: Vec<sys::CUmodule>,
    untraced: HashMap<Kernel, sys::CUfunction>,
    traced: HashMap<(Kernel, Recording), Traced>,
    /// The last site number, and sites that were not taken yet.
    last_site: u16,
    sites: Vec<SiteInfo>,
}

/// A kernel: the index of its text, and its name.
type Kernel = (usize, String);

impl Code {
    pub(super) fn new(ptx: &'static str, architecture: u32) -> Self {
        let variable = |name: &str| std::env::var(name).unwrap_or_default();
        let marks = variable(MARKS_VARIABLE);
        let (each, delay) = marks.split_once('+').unwrap_or((&marks, ""));
        // A value that is not a number marks with one instruction.
        let each = if each.is_empty() { 0 } else { each.parse().unwrap_or(1) };
        Self {
            texts: Vec::from_iter((!ptx.is_empty()).then_some(ptx)),
            has_own: !ptx.is_empty(),
            with_values: Vec::new(),
            without: Vec::new(),
            architecture,
            marks: [each, delay.parse().unwrap_or(0)],
            limits_untraced: !["", "0"].contains(&variable(REGISTERS_VARIABLE).as_str()),
            modules: Vec::new(),
            untraced: HashMap::new(),
            traced: HashMap::new(),
            last_site: 0,
            sites: Vec::new(),
        }
    }

    pub(super) fn add_module(&mut self, module: &KernelModule) {
        let is_known = self.with_values.iter().any(|known| known.name == module.name);
        if !module.values.is_empty() && !is_known {
            self.with_values.push(*module);
        }
        if self.add(module.ptx).is_none() && !self.without.iter().any(|known| known.name == module.name) {
            self.without.push(*module);
        }
    }

    /// Adds a text unless it is known or empty. Returns its index, or `None` if it is empty.
    pub(super) fn add(&mut self, ptx: &'static str) -> Option<usize> {
        let is_same = |text: &&str| std::ptr::eq(*text, ptx) || *text == ptx;
        // The same text can occur at two addresses.
        match self.texts.iter().position(is_same) {
            _ if ptx.is_empty() => None,
            None => {
                self.texts.push(ptx);
                Some(self.texts.len() - 1)
            }
            found => found,
        }
    }

    /// Returns the text index of a call's module, otherwise of the text that the device was opened with.
    fn text_of(&mut self, call: &KernelCall) -> Result<usize, DeviceError> {
        let own = call.module().and_then(|module| self.add(module.ptx));
        own.or(self.has_own.then_some(0)).ok_or_else(|| DeviceError::no_device_code(call.module()))
    }

    /// Loads the missing kernels of `kernels` from every text that contains them: one module per text, with
    /// an untraced entry and, if `recording` is `Some`, a traced entry of each kernel.
    pub(super) fn load(&mut self, kernels: &[&str], recording: Option<Recording>) -> Result<(), DeviceError> {
        // A kernel that no text contains is looked up in the first text, which reports the error.
        let is_missing = |kernel: &str| !self.texts.iter().any(|text| has_entry(text, kernel));
        let missing: Vec<&str> = kernels.iter().copied().filter(|kernel| is_missing(kernel)).collect();
        let has_missing =
            |module: &&KernelModule| module.kernels.iter().any(|kernel| missing.contains(kernel));
        let without = self.without.iter().find(has_missing);
        if self.texts.is_empty() || without.is_some() && !self.has_own {
            return Err(DeviceError::no_device_code(without));
        }
        for (text, ptx) in self.texts.clone().into_iter().enumerate() {
            let has = |kernel: &&str| has_entry(ptx, kernel) || text == 0 && missing.contains(kernel);
            let own: Vec<&str> = kernels.iter().copied().filter(has).collect();
            self.load_from(text, &own, recording)?;
        }
        Ok(())
    }

    fn load_from(
        &mut self,
        text: usize,
        kernels: &[&str],
        recording: Option<Recording>,
    ) -> Result<(), DeviceError> {
        let key = |kernel: &str| (text, kernel.to_owned());
        let is_there = |kernel: &&str| match recording {
            None => self.untraced.contains_key(&key(kernel)),
            Some(recording) => self.traced.contains_key(&(key(kernel), recording)),
        };
        let kernels: Vec<&str> = kernels.iter().copied().filter(|kernel| !is_there(kernel)).collect();
        if kernels.is_empty() {
            return Ok(());
        }
        let limits = match recording {
            None if !self.limits_untraced => Vec::new(),
            _ => self.register_limits(text, &kernels)?,
        };
        self.load_limited(text, &kernels, recording, &limits)
    }

    fn load_limited(
        &mut self,
        text: usize,
        kernels: &[&str],
        recording: Option<Recording>,
        limits: &[(&str, u32)],
    ) -> Result<(), DeviceError> {
        let spaces = recording.map_or(Spaces::NONE, |recording| recording.data);
        let own = match recording {
            Some(Recording { waits: true, .. }) => Cow::Owned(with_waits(self.texts[text])),
            _ => Cow::Borrowed(self.texts[text]),
        };
        let marked = self.mark_accesses(&own, kernels, spaces)?;
        let ptx = marked.as_deref().unwrap_or(&own);
        let key = |kernel: &str| (text, kernel.to_owned());
        let [marks, delay] = self.marks;
        let architecture = self.architecture;
        let options = Options {
            kernels: Some(kernels),
            recording,
            registers: limits,
            limits_bounded: false,
            architecture,
            marks,
            delay,
        };
        let Spliced { text: spliced, kernels: traced, .. } = splice(ptx, &options)
            .map_err(|source| DeviceError::Splice { kernels: kernels.join(", "), source })?;
        let module = driver::load_ptx(&kernels.join(", "), &spliced)?;
        self.modules.push(module);
        for kernel in kernels {
            // Use the untraced kernel of this module from now on: it shares variables with the traced one.
            self.untraced.insert(key(kernel), function(module, kernel)?);
        }
        if let Some(recording) = recording {
            for kernel in traced {
                let loaded = Traced {
                    function: function(module, &kernel.traced_name)?,
                    shared_bytes: kernel.shared_bytes,
                };
                self.traced.insert(((text, kernel.name), recording), loaded);
            }
        }
        Ok(())
    }

    /// Inserts markers before the accesses to these spaces. Returns `None` if `spaces` is empty.
    fn mark_accesses(
        &mut self,
        text: &str,
        kernels: &[&str],
        spaces: Spaces,
    ) -> Result<Option<String>, DeviceError> {
        if spaces.is_none() {
            return Ok(None);
        }
        let options = PointOptions {
            accesses: spaces,
            first_site: self.last_site.saturating_add(1),
            kernels: Some(kernels),
            ..PointOptions::default()
        };
        let marked = mark_accesses(text, &options).map_err(|error| {
            let problem = format!("the accesses of {} cannot be recorded: {error}", kernels.join(", "));
            DeviceError::Unsupported { problem }
        })?;
        self.last_site = marked.sites.last().map_or(self.last_site, |site| site.id);
        let described: Vec<SiteInfo> = marked.sites.iter().map(|site| self.describe(site, kernels)).collect();
        self.sites.extend(described);
        for (function, reason) in &marked.unrecorded {
            driver::note(&format!("{function}: {reason}"));
        }
        Ok(Some(marked.text))
    }

    /// Describes a site. Looks up a value by its ID, first in the kernels' module, then in the others.
    fn describe(&self, site: &Site, kernels: &[&str]) -> SiteInfo {
        let Some(value) = site.value.as_ref().filter(|value| value.id != 0) else {
            return site_info(site, "");
        };
        let is_own = |module: &KernelModule| module.kernels.iter().any(|kernel| kernels.contains(kernel));
        let (own, others): (Vec<&KernelModule>, Vec<_>) =
            self.with_values.iter().partition(|module| is_own(module));
        let named = own.into_iter().chain(others).find_map(|module| {
            let found = module.values.iter().find(|known| known.id == value.id)?;
            Some(value_info(site.id, value.ty, found, module.file))
        });
        named.unwrap_or_else(|| {
            let name = format!("value {}", value.id);
            SiteInfo { name, ..site_info(site, "") }
        })
    }

    pub(super) fn take_sites(&mut self) -> Vec<SiteInfo> {
        std::mem::take(&mut self.sites)
    }

    /// Returns the register limits of traced kernels, from the untraced ones, which it loads if needed.
    fn register_limits<'k>(
        &mut self,
        text: usize,
        kernels: &[&'k str],
    ) -> Result<Vec<(&'k str, u32)>, DeviceError> {
        use sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_NUM_REGS;
        let is_there = |kernel: &&str| self.untraced.contains_key(&(text, (*kernel).to_owned()));
        if !kernels.iter().all(is_there) {
            self.load_limited(text, kernels, None, &[])?;
        }
        let limit = |kernel: &&'k str| {
            // SAFETY: the function is loaded.
            let taken = unsafe {
                let function = self.untraced[&(text, (*kernel).to_owned())];
                result::function::get_function_attribute(function, CU_FUNC_ATTRIBUTE_NUM_REGS)
            };
            let taken = taken.called_for("cuFuncGetAttribute(NUM_REGS)", kernel)?;
            Ok((*kernel, traced_registers(u32::try_from(taken).unwrap_or(0))))
        };
        kernels.iter().map(limit).collect()
    }

    pub(super) fn untraced(&mut self, call: &KernelCall) -> Result<sys::CUfunction, DeviceError> {
        let text = self.text_of(call)?;
        self.load_from(text, &[call.name()], None)?;
        Ok(self.untraced[&(text, call.name().to_owned())])
    }

    pub(super) fn traced(&mut self, call: &KernelCall, recording: Recording) -> Result<Traced, DeviceError> {
        let text = self.text_of(call)?;
        self.load_from(text, &[call.name()], Some(recording))?;
        Ok(self.traced[&((text, call.name().to_owned()), recording)])
    }

    /// # Safety
    /// No kernel of the modules runs or will run.
    pub(super) unsafe fn unload(&mut self) {
        for module in self.modules.drain(..) {
            // Errors are ignored. SAFETY: loaded here, and no longer used.
            let _ = unsafe { result::module::unload(module) };
        }
    }
}

fn has_entry(ptx: &str, kernel: &str) -> bool {
    ptx.match_indices(".entry").any(|(at, word)| {
        let name = ptx[at + word.len()..].trim_start().strip_prefix(kernel);
        name.is_some_and(|rest| rest.starts_with(['(', ' ', '\n', '\t', '\r']))
    })
}

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
        assert!(matches!(code.load(&["k"], None), Err(DeviceError::NoDeviceCode { .. })));
        assert_eq!(["a", "", "b", "a"].map(|text| code.add(text)), [Some(0), None, Some(1), Some(0)]);
        assert_eq!(code.texts, ["a", "b"]);
    }

    const fn module(ptx: &'static str) -> KernelModule {
        let without_ptx = if ptx.is_empty() { "no build script compiled it" } else { "" };
        KernelModule {
            name: "m",
            file: "m.rs",
            kernels: &["step"],
            locations: &[],
            waits: &[],
            values: &[],
            source: "",
            ptx,
            without_ptx,
        }
    }

    #[test]
    fn a_kernel_is_the_one_of_its_module() {
        static MODULES: [KernelModule; 3] =
            [module(".entry step(){ trap; }"), module(".entry step(){ ret; }"), module("")];
        let call = || KernelCall::new("step", Vec::new(), || {});
        let [first, second, without] = MODULES.each_ref().map(|module| call().of_module(module));
        let mut code = Code::new("", 90);
        assert_eq!(MODULES.each_ref().map(|module| code.add(module.ptx)), [Some(0), Some(1), None]);
        assert_eq!(code.text_of(&first).unwrap(), 0, "whichever was added last");
        assert_eq!(code.text_of(&second).unwrap(), 1);
        // A module without code does not use a kernel of another module.
        for call in [without, call()] {
            assert!(matches!(code.text_of(&call), Err(DeviceError::NoDeviceCode { .. })));
        }
        let mut alone = Code::new("", 90);
        alone.add_module(&MODULES[2]);
        let error = alone.load(&["step"], None).unwrap_err().to_string();
        assert!(error.contains("no GPU code for module `m`: no build script compiled it; or use"), "{error}");
        let mut opened = Code::new(".entry step(){}", 90);
        assert_eq!((opened.text_of(&second).unwrap(), opened.text_of(&call()).unwrap()), (1, 0));
    }
}
