//! What the shim knows of the program: its modules, libraries and functions, by the driver's handles.

use std::collections::{BTreeMap, HashMap};
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

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

/// Everything that the shim keeps. Made by the first load or launch of a program that is traced.
pub(crate) struct State {
    pub(crate) settings: Settings,
    /// The process for which it was made: a forked child has a copy that it must not use.
    process: u32,
    pub(crate) registry: Mutex<Registry>,
    pub(crate) traces: Mutex<Traces>,
    pub(crate) noted: Mutex<NotedLaunches>,
    /// Whether the program has said that nothing is to be recorded.
    pub(crate) is_paused: AtomicBool,
    pub(crate) graphs: Mutex<Graphs>,
    pub(crate) summary: Mutex<Summary>,
    /// What the summary has of launches, without its lock.
    pub(crate) counts: Arc<Counts>,
    /// `None` if ranges do not decide what is recorded.
    asked: Option<Arc<Asked>>,
}

static STATE: OnceLock<Option<State>> = OnceLock::new();

/// Returns the state; `None` if nothing is to be traced, or in a child that was forked from a traced process.
pub(crate) fn state() -> Option<&'static State> {
    let make = || {
        // What goes wrong in a hook is told in the summary, not by Rust's own message.
        std::panic::set_hook(Box::new(|panic| summary::note_panic(&panic.to_string())));
        let process = std::process::id();
        let mut summary = Summary::new(report_folder(), process);
        let settings = Settings::read().unwrap_or_else(|problem| {
            summary.refuse(&problem);
            None
        })?;
        let asked = Asked::new(&settings.spec.recording.window).map(Arc::new);
        summary.asked.clone_from(&asked);
        // Counts go on where no trace begins.
        // SAFETY: a function of this library, which stays loaded.
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

/// Writes what became of launches since the summary was written last.
extern "C" fn at_exit() {
    let Some(_inside) = Inside::enter() else { return };
    let _ = guarded(|| state().map(|state| lock(&state.summary).write()));
}

impl State {
    /// Tells whether traces have what kernels access.
    pub(crate) fn records_accesses(&self) -> bool {
        self.settings.spec.recording.spaces() != warptrace_spec::Spaces::NONE
    }

    /// Counts a launch of a kernel that ran untraced in the current context; returns where more of them are counted.
    pub(crate) fn untraced(&self, kernel: &str, reason: &str) -> Arc<Untraced> {
        let context = driver::current_context().map_or(0, |context| context as usize);
        lock(&self.summary).untraced(context, kernel, reason)
    }

    /// Tells whether a launch of this thread is recorded as far as ranges decide, and counts it.
    pub(crate) fn is_within(&self) -> bool {
        let window = &self.settings.spec.recording.window;
        self.asked.as_ref().is_none_or(|asked| asked.has_launch(window))
    }
}

/// Locks; a hook that panicked leaves what it had.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A module or library that the program has loaded.
#[derive(Debug)]
pub(crate) struct Code {
    /// Its kernels with their copies in the same module, or why there are none.
    pub(crate) traced: Result<TracedModule, String>,
    /// What copies in modules of their own are made of.
    source: Option<CopySource>,
    /// What the driver was given: it may read that later.
    _image: Option<Image>,
    /// A number of its own, or that of the code of which it has the locations.
    pub(crate) number: usize,
}

impl Code {
    /// The numbers of its first location and its first site.
    pub(crate) fn first_ids(&self) -> (u16, u16) {
        let Ok(module) = &self.traced else { return (1, 1) };
        let first = module.locations.first().map_or(1, |location| location.id);
        (first, module.sites.first().map_or(1, |site| site.number))
    }

    /// Unloads the copies of its kernels that are in modules of their own.
    pub(crate) fn unload_copies(&self) {
        if let Some(source) = &self.source {
            source.unload();
        }
    }
}

/// Whose function it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Owner {
    Module(usize),
    Library(usize),
}

/// A copy that takes less of a multiprocessor than the first one.
#[derive(Clone, Debug)]
pub(crate) struct FittingCopy {
    pub(crate) code: Arc<Code>,
    pub(crate) kernel: Arc<Kernel>,
    owner: Owner,
    /// A function of a module or a kernel of a library.
    found: usize,
}

impl FittingCopy {
    /// It as a function of the current context.
    pub(crate) fn handle(&self) -> Option<*mut c_void> {
        match self.owner {
            Owner::Module(_) => Some(pointer(self.found)),
            Owner::Library(_) => driver::kernel_function(pointer(self.found)),
        }
    }
}

/// A function that the program may launch.
#[derive(Debug)]
pub(crate) struct Function {
    code: Arc<Code>,
    pub(crate) owner: Owner,
    pub(crate) name: Arc<str>,
    /// The copy in a module of its own, made when it is first needed.
    copied: OnceLock<Result<Copied, String>>,
    /// Copies that take less of a multiprocessor, each by the registers that it may have.
    fitting: Mutex<BTreeMap<u32, Result<FittingCopy, String>>>,
    /// What the program has set on it before, and whether it has set anything.
    settings: Mutex<CopySettings>,
    is_set: AtomicBool,
    /// The traced copy: a function of a module or a kernel of a library, looked up when it is first needed.
    traced: OnceLock<Option<usize>>,
    /// The name as people write it, made when it is first told.
    readable: OnceLock<Arc<str>>,
    /// Launches that were recorded.
    recorded: AtomicU64,
    /// The number of the kernel in the trace that has its untraced launches, as the recorder has it.
    pub(crate) noted: AtomicU64,
    /// Contexts in which the copy was loaded with it.
    loaded: Mutex<Vec<usize>>,
    /// Why none of its launches is recorded, once that is known.
    reason: OnceLock<String>,
    /// Where its launches are counted then, for the context of the last one.
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
            recorded: AtomicU64::new(0),
            noted: AtomicU64::new(0),
            loaded: Mutex::default(),
            reason: OnceLock::new(),
            untraced: Mutex::default(),
        }
    }

    /// The name as people write it.
    pub(crate) fn readable(&self) -> &Arc<str> {
        self.readable.get_or_init(|| names::readable(&self.name).into())
    }

    /// Checks that this many launches of it are not recorded yet, with `more` that are about to be.
    ///
    /// # Errors
    /// [`NOT_ASKED`], if they are.
    pub(crate) fn check_launches(&self, most: Option<u64>, more: u64) -> Result<(), String> {
        let is_over = most.is_some_and(|most| self.recorded.load(Ordering::Relaxed) + more >= most);
        if is_over { Err(NOT_ASKED.to_owned()) } else { Ok(()) }
    }

    /// Tells whether the copy was loaded in a context, and notes that it is.
    pub(crate) fn is_loaded(&self, context: *mut c_void) -> bool {
        let mut loaded = lock(&self.loaded);
        let is_known = loaded.contains(&(context as usize));
        if !is_known {
            loaded.push(context as usize);
        }
        is_known
    }

    /// Counts a launch of a function of which none is recorded, as was found before.
    pub(crate) fn count_untraced(&self, state: &State) {
        let Some(reason) = self.reason.get() else { return };
        let context = driver::current_context().map_or(0, |context| context as usize);
        let mut untraced = lock(&self.untraced);
        match &*untraced {
            Some(known) if known.context() == context => known.count(1),
            _ => *untraced = Some(state.untraced(self.readable(), reason)),
        }
    }

    /// Whether it is known that none of its launches is recorded.
    pub(crate) fn is_untraced(&self) -> bool {
        self.reason.get().is_some()
    }

    /// Remembers that no launch of it is recorded.
    pub(crate) fn stays_untraced(&self, reason: &str) {
        let _ = self.reason.set(reason.to_owned());
    }

    /// Whether none of its launches was recorded.
    pub(crate) fn is_first(&self) -> bool {
        self.recorded.load(Ordering::Relaxed) == 0
    }

    /// Notes that a launch was recorded.
    pub(crate) fn was_recorded(&self) {
        self.recorded.fetch_add(1, Ordering::Relaxed);
    }

    /// The code that has its copy, which is made if there is none yet, and whose that is. The registry must
    /// not be locked.
    ///
    /// # Errors
    /// Why it has none.
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

    /// A copy that has at most so many registers and takes no shared memory, made when it is first needed. The
    /// registry must not be locked.
    ///
    /// # Errors
    /// Why there is none.
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

    /// Tells whether it has a copy, or can have none.
    pub(crate) fn has_copy(&self) -> bool {
        self.code.source.is_none() || self.copied.get().is_some()
    }

    /// Does something to its copy: now, or when it is made.
    pub(crate) fn set(&self, setting: impl Fn(&Self) + Send + 'static) {
        self.is_set.store(true, Ordering::Relaxed);
        let mut settings = lock(&self.settings);
        if self.has_copy() {
            drop(settings);
            setting(self);
        } else {
            settings.push(setting);
        }
    }

    /// The code that has its copy.
    ///
    /// # Errors
    /// Why it has none.
    pub(crate) fn traced_code(&self) -> Result<&Code, String> {
        self.traced_in().map(|(code, _)| &**code)
    }

    /// Its kernel, if it is traced.
    ///
    /// # Errors
    /// Why it is not.
    pub(crate) fn kernel(&self) -> Result<&Kernel, String> {
        let module = self.traced_in()?.0.traced.as_ref().map_err(Clone::clone)?;
        module.kernel(&self.name).ok_or_else(|| {
            let skipped = module.skipped.iter().find(|(name, _)| **name == *self.name);
            skipped.map_or_else(|| NOT_ASKED.to_owned(), |(_, reason)| reason.clone())
        })
    }

    /// The traced copy as a function of the current context.
    pub(crate) fn traced(&self, kernel: &Kernel) -> Option<*mut c_void> {
        let found = self.copy(kernel)?;
        match self.owner {
            Owner::Module(_) => Some(found),
            Owner::Library(_) => driver::kernel_function(found),
        }
    }

    /// The traced copy as a kernel of its library, for all contexts; `None` if it is a module's.
    pub(crate) fn traced_kernel(&self, kernel: &Kernel) -> Option<*mut c_void> {
        matches!(self.owner, Owner::Library(_)).then(|| self.copy(kernel)).flatten()
    }

    /// The traced copy: a module's function, or a library's kernel.
    fn copy(&self, kernel: &Kernel) -> Option<*mut c_void> {
        let name = kernel.traced_name.as_c_str();
        let (_, owner) = self.traced_in().ok()?;
        let find = || driver::function(owner, name).map(|found| found as usize);
        self.traced.get_or_init(find).map(pointer)
    }
}

/// A handle of the driver's.
fn pointer(handle: usize) -> *mut c_void {
    std::ptr::with_exposed_provenance_mut(handle)
}

/// The driver's handles, and what they stand for.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    owners: HashMap<Owner, Arc<Code>>,
    /// Functions of modules, and kernels of libraries: the driver takes both for a launch.
    functions: HashMap<usize, Arc<Function>>,
    next_id: u32,
    /// The number of the last site that a module has.
    last_site: u16,
    codes: usize,
}

impl Registry {
    /// The id of the next module's first location; `None` if there are no more.
    pub(crate) fn first_id(&self) -> Option<u16> {
        u16::try_from(self.next_id.max(1)).ok()
    }

    /// The number of the next module's first site; where there are no more, its accesses are not recorded.
    pub(crate) fn first_site(&self) -> u16 {
        self.last_site.saturating_add(1)
    }

    /// Takes the ids of a module's locations: no other module gets them.
    pub(crate) fn take_ids(&mut self, module: &TracedModule) {
        let last = module.locations.last().map_or(0, |location| u32::from(location.id));
        self.next_id = self.next_id.max(last + 1);
        self.last_site = self.last_site.max(module.sites.last().map_or(0, |site| site.number));
    }

    /// Tells whether a module or library has traced copies.
    pub(crate) fn is_traced(&self, owner: Owner) -> bool {
        self.owners.get(&owner).is_some_and(|code| code.traced.is_ok())
    }

    /// Notes a loaded module or library.
    pub(crate) fn add(&mut self, owner: Owner, traced: Result<TracedModule, String>, image: Option<Image>) {
        let code = self.numbered(traced, None, image);
        self.owned(owner, &code);
    }

    /// Notes a loaded module or library whose kernels get copies in modules of their own.
    pub(crate) fn add_source(&mut self, owner: Owner, source: CopySource) {
        let traced = Err("its copy is in another module".to_owned());
        let code = self.numbered(traced, Some(source), None);
        self.owned(owner, &code);
    }

    /// Notes a module with the copy of a kernel, which may have the locations of another.
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

    /// Notes that a library's module has a handle of its own.
    pub(crate) fn alias(&mut self, library: usize, module: usize) {
        if let Some(code) = self.owners.get(&Owner::Library(library)) {
            let code = Arc::clone(code);
            self.owned(Owner::Module(module), &code);
        }
    }

    /// Notes whose code it is. What had the same handle before has gone with its context, without a
    /// word.
    fn owned(&mut self, owner: Owner, code: &Arc<Code>) {
        let before = self.owners.insert(owner, Arc::clone(code));
        if before.is_some_and(|before| !Arc::ptr_eq(&before, code)) {
            self.functions.retain(|_, function| function.owner != owner);
        }
    }

    /// Names the kernels of a module or library of which copies can be made: in the PTX, and as people write it.
    pub(crate) fn kernel_names(&self, owner: Owner) -> Vec<(String, String)> {
        let source = self.owners.get(&owner).and_then(|code| code.source.as_ref());
        let names = source.map(|source| source.names().iter());
        names.into_iter().flatten().map(|(name, readable)| (name.clone(), readable.clone())).collect()
    }

    /// Forgets a module or library, and its functions; returns it.
    pub(crate) fn remove(&mut self, owner: Owner) -> Option<Arc<Code>> {
        let code = self.owners.remove(&owner)?;
        // A library's module goes with it.
        self.owners.retain(|_, other| !Arc::ptr_eq(other, &code));
        self.functions.retain(|_, function| function.owner != owner && !Arc::ptr_eq(&function.code, &code));
        Some(code)
    }

    /// Notes a function that the program has looked up.
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

    /// Notes that a kernel of a library is such a function in a context.
    pub(crate) fn is_function(&mut self, kernel: usize, function: usize) {
        match self.functions.get(&kernel).cloned() {
            Some(known) => drop(self.functions.insert(function, known)),
            None => drop(self.functions.remove(&function)),
        }
    }

    /// Kernels of libraries that have a name, with their handles.
    pub(crate) fn kernels_of(&self, name: &str) -> Vec<(*mut c_void, Arc<Function>)> {
        let is_it =
            |function: &Function| *function.name == *name && matches!(function.owner, Owner::Library(_));
        let found = self.functions.iter().filter(|(_, function)| is_it(function));
        found.map(|(handle, function)| (pointer(*handle), function.clone())).collect()
    }

    /// The function of a handle.
    pub(crate) fn function(&self, handle: usize) -> Option<&Arc<Function>> {
        self.functions.get(&handle)
    }
}
