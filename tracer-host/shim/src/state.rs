//! The shim's state: the program's modules, libraries and functions, by driver handle.

use std::collections::{BTreeMap, HashMap};
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use warptrace_host::LaunchShape;

use crate::assemble::Image;
use crate::copies::{self, Copied, CopySource, Fitting, Settings as CopySettings};
use crate::driver;
use crate::exchange::{Kernel, NOT_ASKED, TracedModule};
use crate::graphs::Graphs;
use crate::inside::{Inside, guarded};
use crate::names;
use crate::ranges::Asked;
use crate::settings::{Settings, report_folder};
use crate::summary::{self, Counts, Summary, Untraced};
use crate::trace::{NotedLaunches, Traces};

/// The shim's global state. The first load or launch of a traced program creates it.
pub(crate) struct State {
    pub(crate) settings: Settings,
    /// The process that created the state. A forked child has a copy, which it must not use.
    process: u32,
    pub(crate) registry: Mutex<Registry>,
    pub(crate) traces: Mutex<Traces>,
    pub(crate) noted: Mutex<NotedLaunches>,
    /// True if the program has paused recording, or has not yet started it in manual mode.
    pub(crate) is_paused: AtomicBool,
    pub(crate) graphs: Mutex<Graphs>,
    pub(crate) summary: Mutex<Summary>,
    /// The summary's launch counts, usable without its lock.
    pub(crate) counts: Arc<Counts>,
    /// `None` if ranges do not limit recording.
    asked: Option<Arc<Asked>>,
}

static STATE: OnceLock<Option<State>> = OnceLock::new();

/// Returns the state; `None` if nothing is to be traced, or in a forked child of a traced process.
pub(crate) fn state() -> Option<&'static State> {
    let make = || {
        // A panic in a hook goes to the summary instead of standard error.
        std::panic::set_hook(Box::new(|panic| summary::note_panic(&panic.to_string())));
        let process = std::process::id();
        let mut summary = Summary::new(report_folder(), process);
        let settings = Settings::read().unwrap_or_else(|problem| {
            summary.refuse(&problem);
            None
        })?;
        let asked = Asked::new(&settings.spec.recording.window).map(Arc::new);
        summary.asked.clone_from(&asked);
        // Launches are also counted if no trace starts, so the summary is written at exit.
        // SAFETY: `at_exit` is a function of this library, which stays loaded.
        unsafe { libc::atexit(at_exit) };
        Some(State {
            process,
            registry: Mutex::default(),
            traces: Mutex::new(Traces::paused(settings.spec.manual)),
            noted: Mutex::default(),
            is_paused: AtomicBool::new(settings.spec.manual),
            graphs: Mutex::default(),
            counts: Arc::clone(&summary.counts),
            summary: Mutex::new(summary),
            settings,
            asked,
        })
    };
    STATE.get_or_init(make).as_ref().filter(|state| state.process == std::process::id())
}

/// Writes the summary, whose launch counts have changed since it was last written.
extern "C" fn at_exit() {
    let Some(_inside) = Inside::enter() else { return };
    let _ = guarded(|| state().map(|state| lock(&state.summary).write()));
}

impl State {
    pub(crate) fn records_accesses(&self) -> bool {
        self.settings.spec.recording.spaces() != warptrace_spec::Spaces::NONE
    }

    /// Counts an untraced launch in the current context. Returns its entry, for counting more launches.
    pub(crate) fn untraced(&self, kernel: &str, reason: &str) -> Arc<Untraced> {
        let context = driver::current_context().map_or(0, |context| context as usize);
        lock(&self.summary).untraced(context, kernel, reason)
    }

    /// Counts a launch of this thread. Returns true if ranges allow recording it.
    pub(crate) fn is_within(&self) -> bool {
        let window = &self.settings.spec.recording.window;
        self.asked.as_ref().is_none_or(|asked| asked.has_launch(window))
    }
}

/// Locks a mutex, and ignores poisoning by a hook that panicked.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A module or library that the program has loaded, or the module of a copy.
#[derive(Debug)]
pub(crate) struct Code {
    /// The kernels with copies in the same module, or the reason why there are no copies.
    pub(crate) traced: Result<TracedModule, String>,
    /// The PTX for copies in separate modules.
    source: Option<CopySource>,
    /// The image passed to the driver, which may still read it.
    _image: Option<Image>,
    /// A unique number. A second copy of a kernel has the number of the first: both have the same locations.
    pub(crate) number: usize,
}

impl Code {
    /// Returns the numbers of the first location and the first site.
    pub(crate) fn first_ids(&self) -> (u16, u16) {
        let Ok(module) = &self.traced else { return (1, 1) };
        let first = module.locations.first().map_or(1, |location| location.id);
        (first, module.sites.first().map_or(1, |site| site.number))
    }

    pub(crate) fn unload_copies(&self) {
        if let Some(source) = &self.source {
            source.unload();
        }
    }
}

/// The module or library of a function, by handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Owner {
    Module(usize),
    Library(usize),
}

/// A second copy of a kernel that uses fewer resources of a multiprocessor than the first.
#[derive(Clone, Debug)]
pub(crate) struct FittingCopy {
    pub(crate) code: Arc<Code>,
    pub(crate) kernel: Arc<Kernel>,
    owner: Owner,
    /// Handle of a module's function or a library's kernel.
    found: usize,
}

impl FittingCopy {
    /// Returns the copy as a function of the current context.
    pub(crate) fn handle(&self) -> Option<*mut c_void> {
        driver::in_context(self.owner, pointer(self.found))
    }
}

/// Copy, grid, block, bytes of dynamic shared memory, and whether the launch is cooperative.
pub(crate) type CheckedLaunch = (usize, [u32; 3], [u32; 3], u32, bool);

/// A function that the program may launch.
#[derive(Debug)]
pub(crate) struct Function {
    code: Arc<Code>,
    pub(crate) owner: Owner,
    pub(crate) name: Arc<str>,
    /// The copy in a separate module, made at first use.
    copied: OnceLock<Result<Copied, String>>,
    /// Copies that use fewer resources of a multiprocessor, by their limit on registers.
    fitting: Mutex<BTreeMap<u32, Result<FittingCopy, String>>>,
    /// Settings from the program for the copy, and whether there were any.
    settings: Mutex<CopySettings>,
    is_set: AtomicBool,
    /// Handle of the traced copy, a module's function or a library's kernel. Looked up at first use.
    traced: OnceLock<Option<usize>>,
    /// The demangled name, made at first use.
    readable: OnceLock<Arc<str>>,
    /// The last launch that was found to fit on the device.
    pub(crate) checked: Mutex<Option<(CheckedLaunch, (LaunchShape, u64))>>,
    /// Number of recorded launches.
    recorded: AtomicU64,
    /// The kernel's number for untraced launches in the trace. Set by the recorder.
    pub(crate) noted: AtomicU64,
    /// Contexts in which the copy was loaded together with the kernel.
    loaded: Mutex<Vec<usize>>,
    /// The reason why no launch can be recorded, once known.
    reason: OnceLock<String>,
    /// The summary's entry for untraced launches in the context of the last one.
    untraced: Mutex<Option<Arc<Untraced>>>,
}

impl Function {
    pub(crate) fn new(code: Arc<Code>, owner: Owner, name: &str) -> Self {
        Self {
            code,
            owner,
            name: name.into(),
            copied: OnceLock::new(),
            fitting: Mutex::default(),
            settings: Mutex::default(),
            is_set: AtomicBool::new(false),
            traced: OnceLock::new(),
            readable: OnceLock::new(),
            checked: Mutex::default(),
            recorded: AtomicU64::new(0),
            noted: AtomicU64::new(0),
            loaded: Mutex::default(),
            reason: OnceLock::new(),
            untraced: Mutex::default(),
        }
    }

    pub(crate) fn readable(&self) -> &Arc<str> {
        self.readable.get_or_init(|| names::readable(&self.name).into())
    }

    /// Fails with [`NOT_ASKED`] unless the recorded launches, plus `more` that follow, are fewer than `most`.
    pub(crate) fn check_launches(&self, most: Option<u64>, more: u64) -> Result<(), String> {
        let is_over = most.is_some_and(|most| self.recorded.load(Ordering::Relaxed) + more >= most);
        if is_over { Err(NOT_ASKED.to_owned()) } else { Ok(()) }
    }

    /// Returns true if the copy was already loaded in a context, and marks it as loaded.
    pub(crate) fn is_loaded(&self, context: *mut c_void) -> bool {
        let mut loaded = lock(&self.loaded);
        let is_known = loaded.contains(&(context as usize));
        if !is_known {
            loaded.push(context as usize);
        }
        is_known
    }

    /// Counts a launch of a function that is known to stay untraced.
    pub(crate) fn count_untraced(&self, state: &State) {
        let Some(reason) = self.reason.get() else { return };
        let context = driver::current_context().map_or(0, |context| context as usize);
        let mut untraced = lock(&self.untraced);
        match &*untraced {
            Some(known) if known.context() == context => known.count(1),
            _ => *untraced = Some(state.untraced(self.readable(), reason)),
        }
    }

    pub(crate) fn is_untraced(&self) -> bool {
        self.reason.get().is_some()
    }

    /// Marks the function as untraced in all launches.
    pub(crate) fn stays_untraced(&self, reason: &str) {
        let _ = self.reason.set(reason.to_owned());
    }

    /// Returns true if no launch was recorded yet.
    pub(crate) fn is_first(&self) -> bool {
        self.recorded.load(Ordering::Relaxed) == 0
    }

    pub(crate) fn was_recorded(&self) {
        self.recorded.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the code with the copy, and its owner, or the reason why there is none. Makes the copy at
    /// first use. The registry must not be locked.
    fn traced_in(&self) -> Result<(&Arc<Code>, Owner), String> {
        let Some(source) = &self.code.source else { return Ok((&self.code, self.owner)) };
        let mut is_new = false;
        let make = || {
            is_new = true;
            copies::make(source, self, None)
        };
        let copied = self.copied.get_or_init(make).as_ref().map_err(Clone::clone)?;
        if is_new {
            lock(&self.settings).repeat(self);
        }
        Ok((&copied.code, copied.owner))
    }

    /// Returns a copy with at most `registers` registers per thread and no shared memory, or the reason why
    /// there is none. Makes it at first use. The registry must not be locked.
    pub(crate) fn fitting(&self, registers: u32) -> Result<FittingCopy, String> {
        if self.is_set.load(Ordering::Relaxed) {
            return Err("the program has set attributes on it, which a smaller copy would lack".to_owned());
        }
        let mut fitting = lock(&self.fitting);
        let make = || {
            let source = self.code.source.as_ref().ok_or("its copy is in the module of the program")?;
            let Copied { code, owner } =
                copies::make(source, self, Some(Fitting { first: self.traced_code()?, registers }))?;
            let module = code.traced.as_ref().map_err(Clone::clone)?;
            let kernel = module.kernel(&self.name).ok_or("it is not in the module of its copy")?.clone();
            let found =
                driver::function(owner, &kernel.traced_name).ok_or("its copy is not in its module")?;
            Ok(FittingCopy { code, kernel: Arc::new(kernel), owner, found: found as usize })
        };
        fitting.entry(registers).or_insert_with(make).clone()
    }

    /// Returns true if the copy exists, if making it has failed, or if no separate copy is needed.
    pub(crate) fn has_copy(&self) -> bool {
        self.code.source.is_none() || self.copied.get().is_some()
    }

    /// Applies a setting to the copy: now, or when the copy is made.
    pub(crate) fn set(&self, setting: impl Fn(&Self) + Send + 'static) {
        self.is_set.store(true, Ordering::Relaxed);
        *lock(&self.checked) = None;
        let mut settings = lock(&self.settings);
        if self.has_copy() {
            drop(settings);
            setting(self);
        } else {
            settings.push(setting);
        }
    }

    /// Returns the code with the copy, or the reason why there is none. The registry must not be locked.
    pub(crate) fn traced_code(&self) -> Result<&Code, String> {
        self.traced_in().map(|(code, _)| &**code)
    }

    /// Returns the kernel, or the reason why it is not traced. The registry must not be locked.
    pub(crate) fn kernel(&self) -> Result<&Kernel, String> {
        // If the user has not asked for the kernel, this is the reason, whatever else prevents tracing.
        let is_asked = || state().is_none_or(|state| state.settings.wants(&self.name, self.readable()));
        self.find_kernel().map_err(|reason| if is_asked() { reason } else { NOT_ASKED.to_owned() })
    }

    fn find_kernel(&self) -> Result<&Kernel, String> {
        let module = self.traced_in()?.0.traced.as_ref().map_err(Clone::clone)?;
        module.kernel(&self.name).ok_or_else(|| {
            let skipped = module.skipped.iter().find(|(name, _)| **name == *self.name);
            skipped.map_or_else(|| NOT_ASKED.to_owned(), |(_, reason)| reason.clone())
        })
    }

    /// Returns the traced copy as a function of the current context.
    pub(crate) fn traced(&self, kernel: &Kernel) -> Option<*mut c_void> {
        let found = self.copy(kernel)?;
        driver::in_context(self.owner, found)
    }

    /// Returns the traced copy as a library's kernel, valid in all contexts; `None` for a module's function.
    pub(crate) fn traced_kernel(&self, kernel: &Kernel) -> Option<*mut c_void> {
        matches!(self.owner, Owner::Library(_)).then(|| self.copy(kernel)).flatten()
    }

    /// Returns the traced copy: a module's function or a library's kernel.
    fn copy(&self, kernel: &Kernel) -> Option<*mut c_void> {
        let name = kernel.traced_name.as_c_str();
        let (_, owner) = self.traced_in().ok()?;
        let find = || driver::function(owner, name).map(|found| found as usize);
        self.traced.get_or_init(find).map(pointer)
    }
}

fn pointer(handle: usize) -> *mut c_void {
    std::ptr::with_exposed_provenance_mut(handle)
}

/// Maps driver handles to code and functions.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    owners: HashMap<Owner, Arc<Code>>,
    /// Functions of modules and kernels of libraries. The driver accepts either in a launch.
    functions: HashMap<usize, Arc<Function>>,
    next_id: u32,
    /// Number of the last site in any module.
    last_site: u16,
    codes: usize,
}

impl Registry {
    /// Returns the id for the next module's first location; `None` if all ids are taken.
    pub(crate) fn first_id(&self) -> Option<u16> {
        u16::try_from(self.next_id.max(1)).ok()
    }

    /// Returns the number for the next module's first site. When numbers run out, accesses are not recorded.
    pub(crate) fn first_site(&self) -> u16 {
        self.last_site.saturating_add(1)
    }

    pub(crate) fn take_ids(&mut self, module: &TracedModule) {
        let last = module.locations.last().map_or(0, |location| u32::from(location.id));
        self.next_id = self.next_id.max(last + 1);
        self.last_site = self.last_site.max(module.sites.last().map_or(0, |site| site.number));
    }

    pub(crate) fn is_traced(&self, owner: Owner) -> bool {
        self.owners.get(&owner).is_some_and(|code| code.traced.is_ok())
    }

    pub(crate) fn add(&mut self, owner: Owner, traced: Result<TracedModule, String>, image: Option<Image>) {
        let code = self.numbered(traced, None, image);
        self.owned(owner, &code);
    }

    /// Adds a loaded module or library whose kernels get copies in separate modules.
    pub(crate) fn add_source(&mut self, owner: Owner, source: CopySource) {
        let traced = Err("its copy is in another module".to_owned());
        let code = self.numbered(traced, Some(source), None);
        self.owned(owner, &code);
    }

    /// Creates the code of a copy's module. With `like`, the code shares the number of that code.
    pub(crate) fn new_code(&mut self, module: TracedModule, image: Image, like: Option<&Code>) -> Arc<Code> {
        match like {
            None => self.numbered(Ok(module), None, Some(image)),
            Some(Code { number, .. }) => {
                Arc::new(Code { traced: Ok(module), source: None, _image: Some(image), number: *number })
            }
        }
    }

    fn numbered(
        &mut self,
        traced: Result<TracedModule, String>,
        source: Option<CopySource>,
        image: Option<Image>,
    ) -> Arc<Code> {
        self.codes += 1;
        Arc::new(Code { traced, source, _image: image, number: self.codes })
    }

    /// Adds the separate module handle of a library.
    pub(crate) fn alias(&mut self, library: usize, module: usize) {
        if let Some(code) = self.owners.get(&Owner::Library(library)) {
            let code = Arc::clone(code);
            self.owned(Owner::Module(module), &code);
        }
    }

    /// Sets the owner's code. If the driver has reused its handle, removes the functions of the former owner.
    fn owned(&mut self, owner: Owner, code: &Arc<Code>) {
        let before = self.owners.insert(owner, Arc::clone(code));
        if before.is_some_and(|before| !Arc::ptr_eq(&before, code)) {
            self.functions.retain(|_, function| function.owner != owner);
        }
    }

    /// Returns the kernels for which copies can be made: name in the PTX and demangled name.
    pub(crate) fn kernel_names(&self, owner: Owner) -> Vec<(String, String)> {
        let source = self.owners.get(&owner).and_then(|code| code.source.as_ref());
        let names = source.map(|source| source.names().iter());
        names.into_iter().flatten().map(|(name, readable)| (name.clone(), readable.clone())).collect()
    }

    /// Removes a module or library with its functions, and returns its code.
    pub(crate) fn remove(&mut self, owner: Owner) -> Option<Arc<Code>> {
        let code = self.owners.remove(&owner)?;
        // Also removes the module handle of a library.
        self.owners.retain(|_, other| !Arc::ptr_eq(other, &code));
        self.functions.retain(|_, function| function.owner != owner && !Arc::ptr_eq(&function.code, &code));
        Some(code)
    }

    /// Adds a function that the program has looked up.
    pub(crate) fn found(&mut self, owner: Owner, name: &str, function: usize) {
        match self.owners.get(&owner) {
            Some(code) => {
                let is_known = |known: &Arc<Function>| {
                    known.owner == owner && *known.name == *name && Arc::ptr_eq(&known.code, code)
                };
                if !self.functions.get(&function).is_some_and(is_known) {
                    let new = Arc::new(Function::new(Arc::clone(code), owner, name));
                    self.functions.insert(function, new);
                }
            }
            None => drop(self.functions.remove(&function)),
        }
    }

    /// Adds the handle that a library's kernel has as a function of a context.
    pub(crate) fn is_function(&mut self, kernel: usize, function: usize) {
        match self.functions.get(&kernel).cloned() {
            Some(known) => drop(self.functions.insert(function, known)),
            None => drop(self.functions.remove(&function)),
        }
    }

    /// Returns the library kernels with a name, and their handles.
    pub(crate) fn kernels_of(&self, name: &str) -> Vec<(*mut c_void, Arc<Function>)> {
        let is_it =
            |function: &Function| *function.name == *name && matches!(function.owner, Owner::Library(_));
        let found = self.functions.iter().filter(|(_, function)| is_it(function));
        found.map(|(handle, function)| (pointer(*handle), function.clone())).collect()
    }

    pub(crate) fn function(&self, handle: usize) -> Option<&Arc<Function>> {
        self.functions.get(&handle)
    }
}
