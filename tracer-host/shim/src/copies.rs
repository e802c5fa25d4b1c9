//! Traced copies of kernels in modules of their own, each made when its kernel is first launched.
//!
//! The program's image stays what it is, and so does each kernel that is not traced. Only where code uses
//! variables of its module, of which another module would have others, does the driver get one text with
//! kernels and copies instead of the image, when that is loaded ([`crate::hooks`]).

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

/// Copies that take longer to make are told.
const LONG: Duration = Duration::from_millis(250);

/// Copies of a module with more kernels than this are made when they are launched, also where the driver loads all
/// functions at once: they would take long, and all numbers of locations.
const MAX_EAGER: usize = 64;

/// What copies of a module's kernels are made of.
#[derive(Debug)]
pub(crate) struct CopySource {
    found: ImagePtx,
    /// Names as people write them, by those in the PTX.
    names: OnceLock<HashMap<String, String>>,
    /// Modules of copies that the driver has.
    made: Mutex<Vec<Owner>>,
}

impl CopySource {
    pub(crate) fn new(found: ImagePtx) -> Self {
        Self { found, names: OnceLock::new(), made: Mutex::default() }
    }

    /// Names as people write them, by those in the PTX.
    pub(crate) fn names(&self) -> &HashMap<String, String> {
        self.names.get_or_init(|| exchange::kernel_names(&self.found.ptx))
    }

    /// Unloads the copies: the program has unloaded the module.
    pub(crate) fn unload(&self) {
        for owner in lock(&self.made).drain(..) {
            driver::unload(owner);
        }
    }
}

/// A copy in a module of its own.
#[derive(Clone, Debug)]
pub(crate) struct Copied {
    pub(crate) code: Arc<Code>,
    pub(crate) owner: Owner,
}

/// Does to a kernel's copy what the program has done to the kernel.
type Setting = Box<dyn Fn(&Function) + Send>;

/// What the program has set on a kernel that has no copy yet.
#[derive(Default)]
pub(crate) struct Settings(Vec<Setting>);

impl Settings {
    pub(crate) fn push(&mut self, setting: impl Fn(&Function) + Send + 'static) {
        self.0.push(Box::new(setting));
    }

    /// Repeats it on the copy, now that it is there.
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

/// Makes the copies of all kernels of a module or library that the program has loaded, where the driver loads all
/// functions at once. A program may rely on that: where a kernel waits for another one, loading the copy of that
/// one waits for the first.
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
        // Why there is none is said when it is launched.
        let _ = function.map(|function| function.kernel().map(drop));
    }
    Some(())
}

/// Another copy of a kernel, which takes less of a multiprocessor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fitting<'a> {
    /// The first copy, of which it has the locations.
    pub(crate) first: &'a Code,
    /// Registers that a thread may have.
    pub(crate) registers: u32,
}

/// Unloads what cannot be used, and answers so.
pub(crate) fn usable(unusable: Option<Owner>) -> Answer {
    unusable.map_or(SUCCESS, |owner| {
        driver::unload(owner);
        driver::UNUSABLE
    })
}

/// Makes the copy of a kernel.
///
/// # Errors
/// Why there can be none.
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
            // Ids are given under the lock: no two modules have the same.
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
