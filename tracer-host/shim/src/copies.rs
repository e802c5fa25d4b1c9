//! Traced copies of kernels. Each copy has a separate module, made at the first launch of its kernel.
//!
//! The program's image and its untraced kernels do not change, unless the code uses variables of its module:
//! a second module would have separate variables. Then the driver gets one text with kernels and copies
//! instead of the image, at load time ([`crate::hooks`]).

use std::collections::HashMap;
use std::ffi::CString;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use warptrace_host::MemoryChange;

use crate::assemble::{self, Image};
use crate::driver::{self, Answer, Relaxed, SUCCESS};
use crate::exchange::{self, Alone, exchange};
use crate::image::ImagePtx;
use crate::state::{Code, Function, Owner, lock, state};

/// If making a copy takes at least this long, the summary has a note about it.
const LONG: Duration = Duration::from_millis(250);

/// Most kernels of a module for which copies are made at load time: more take too long and use up the ids.
const MAX_EAGER: usize = 64;

/// The PTX from which copies of a module's kernels are made.
#[derive(Debug)]
pub(crate) struct CopySource {
    found: ImagePtx,
    /// Demangled kernel names, by name in the PTX.
    names: OnceLock<HashMap<String, String>>,
    /// Loaded modules and libraries with copies.
    made: Mutex<Vec<Owner>>,
}

impl CopySource {
    pub(crate) fn new(found: ImagePtx) -> Self {
        Self { found, names: OnceLock::new(), made: Mutex::default() }
    }

    pub(crate) fn names(&self) -> &HashMap<String, String> {
        self.names.get_or_init(|| exchange::kernel_names(&self.found.ptx))
    }

    /// Unloads the copies, after the program has unloaded the module.
    pub(crate) fn unload(&self) {
        for owner in lock(&self.made).drain(..) {
            driver::unload(owner);
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Copied {
    pub(crate) code: Arc<Code>,
    pub(crate) owner: Owner,
}

type Setting = Box<dyn Fn(&Function) + Send>;

/// Settings that the program applied to a kernel before the kernel had a copy.
#[derive(Default)]
pub(crate) struct Settings(Vec<Setting>);

impl Settings {
    pub(crate) fn push(&mut self, setting: impl Fn(&Function) + Send + 'static) {
        self.0.push(Box::new(setting));
    }

    /// Applies the settings to the new copy and forgets them.
    pub(crate) fn repeat(&mut self, function: &Function) {
        for setting in self.0.drain(..) {
            setting(function);
        }
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} settings", self.0.len())
    }
}

/// Makes the copies of all kernels of a module or library, if the driver loads functions eagerly. Otherwise,
/// if a kernel waits for another one whose copy is loaded at its launch, both would hang.
pub(crate) fn make_all(owner: Owner) -> Option<()> {
    let state = state().filter(|_| driver::loads_eagerly())?;
    let mut names = lock(&state.registry).kernel_names(owner);
    names.retain(|(name, readable)| state.settings.wants(name, readable));
    if names.len() > MAX_EAGER {
        return None;
    }
    names.sort_unstable();
    for (name, _) in names {
        let handle = CString::new(&*name).ok().and_then(|name| driver::function(owner, &name));
        let Some(handle) = handle.map(|handle| handle as usize) else { continue };
        let function = {
            let mut registry = lock(&state.registry);
            registry.found(owner, &name, handle);
            registry.function(handle).cloned()
        };
        // If no copy can be made, the launch reports the reason.
        let _ = function.map(|function| function.kernel().map(drop));
    }
    Some(())
}

/// A request for a second copy of a kernel that uses fewer resources of a multiprocessor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fitting<'a> {
    /// The first copy. The second copy uses the same location ids.
    pub(crate) first: &'a Code,
    pub(crate) registers: u32,
}

/// Returns success if nothing is unusable. Otherwise unloads the unusable code and returns an error code.
pub(crate) fn usable(unusable: Option<Owner>) -> Answer {
    unusable.map_or(SUCCESS, |owner| {
        driver::unload(owner);
        driver::UNUSABLE
    })
}

/// Makes the traced copy of a kernel and loads it, or returns the reason why it cannot.
pub(crate) fn make(
    source: &CopySource,
    function: &Function,
    fitting: Option<Fitting<'_>>,
) -> Result<Copied, String> {
    let state = state().ok_or("nothing is traced")?;
    let _relaxed = Relaxed::enter();
    let architecture = driver::architecture();
    let started = Instant::now();
    let readable = source.names().get(&*function.name).map_or(&*function.name, String::as_str);
    let registers = fitting.map(|fitting| fitting.registers);
    let alone = Alone { name: &function.name, readable, registers };
    let made = |first| exchange(&source.found, Some(alone), &state.settings, first, architecture);
    let (text, module) = match fitting {
        Some(Fitting { first, .. }) => made(first.first_ids())?,
        None => {
            // Ids are assigned under the lock, so that no two modules share ids.
            let mut registry = lock(&state.registry);
            let first =
                registry.first_id().ok_or("all 65,535 location ids are taken by kernels before it")?;
            let made = made((first, registry.first_site()))?;
            registry.take_ids(&made.1);
            made
        }
    };
    let spliced_in = started.elapsed();
    let mut owner = None;
    let name = module.kernels().first().map(|kernel| kernel.traced_name.clone()).unwrap_or_default();
    let load = |image: &Image| match driver::load_like(function.owner, image.as_ptr(), &mut owner) {
        SUCCESS => usable(owner.take_if(|owner| !driver::is_usable(*owner, &name))),
        refused => refused,
    };
    let loaded = assemble::load(text, &source.found.assembled, architecture, load)?;
    let owner = owner.ok_or("the driver has loaded nothing")?;
    lock(&source.made).push(owner);
    let took = started.elapsed();
    let long = (took >= LONG).then(|| {
        let (all, assembled) = (took.as_secs_f64(), (took - spliced_in).as_secs_f64());
        format!("the traced copy of {readable} took {all:.1} s to make, {assembled:.1} s of them to assemble")
    });
    for note in loaded.1.into_iter().chain(long).chain(module.remarks()) {
        lock(&state.summary).note(note);
    }
    if module.allocates && state.records_accesses() {
        lock(&state.traces).change_memory(MemoryChange::Unknown);
    }
    let code = lock(&state.registry).new_code(module, loaded.0, fitting.map(|fitting| fitting.first));
    Ok(Copied { code, owner })
}
