//! Hooks for images that the program loads. The driver gets the program's image, and [`crate::copies`] makes
//! traced copies at launch. If code uses variables of its module, the driver gets a text with kernels and
//! copies instead.

use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_uint, c_void};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cudarc::driver::sys;
use warptrace_format::file::BufferKind;
use warptrace_host::{Memory, MemoryChange};

use super::{Handle, List};
use crate::assemble::{self, Image};
use crate::copies::{self, CopySource, usable};
use crate::cubin::Assembled;
use crate::driver::{self, Answer, SUCCESS};
use crate::exchange::{self, TracedModule, exchange};
use crate::image::{self, ImagePtx};
use crate::inside::guarded;
use crate::names;
use crate::state::{Code, Owner, lock, state};

/// Limit on the bytes of an image file. Kernels of larger files are not traced.
const MAX_FILE_BYTES: u64 = 1 << 30;

/// If loading takes at least this long, the summary has a note about it.
const LONG_LOAD: Duration = Duration::from_millis(250);

enum Fate {
    /// The program's image. Copies of its kernels are made later.
    Kept(CopySource),
    /// Another text, its module, how the program's cubin was assembled, and the device's architecture.
    Exchanged(CString, TracedModule, Assembled, u32),
    /// The program's image. Its kernels are not traced, for this reason.
    Untraced(String),
}

/// Decides how an image is loaded; `None` if nothing is traced.
fn fate(find: impl FnOnce(u32) -> Result<ImagePtx, String>) -> Option<Fate> {
    let decide = || {
        let state = state()?;
        let architecture = driver::architecture();
        if architecture == 0 {
            return Some(Fate::Untraced("the driver does not say what device it is for".to_owned()));
        }
        let found = match find(architecture) {
            Ok(found) => found,
            Err(reason) => return Some(Fate::Untraced(reason)),
        };
        // Instructions for hardware counters are added to the kernels themselves.
        if !state.settings.spec.marks && exchange::may_stand_alone(&found.ptx).is_ok() {
            return Some(Fate::Kept(CopySource::new(found)));
        }
        // Ids are assigned under the lock, so that no two modules share ids.
        let mut registry = lock(&state.registry);
        let Some(first) = registry.first_id() else {
            return Some(Fate::Untraced("all 65,535 location ids are taken by kernels before it".to_owned()));
        };
        let started = Instant::now();
        let first = (first, registry.first_site());
        Some(match exchange(&found, None, &state.settings, first, architecture) {
            Ok((text, mut module)) => {
                module.made_in = started.elapsed();
                registry.take_ids(&module);
                Fate::Exchanged(text, module, found.assembled, architecture)
            }
            Err(reason) => Fate::Untraced(reason),
        })
    };
    guarded(decide).unwrap_or_else(|| Some(Fate::Untraced("the tracer failed on it".to_owned())))
}

/// Adds notes to the summary on a module that replaced the program's: its remarks, `more`, and a long load.
fn note(module: &TracedModule, more: Option<String>, took: Duration) -> Option<()> {
    let mut summary = lock(&state()?.summary);
    module.remarks().for_each(|line| summary.note(line));
    if let Some(more) = more {
        summary.note(more);
    }
    if took >= LONG_LOAD {
        summary.note(format!(
            "the driver took {:.1} s to load a module of which {} kernels have trace points, which took {:.0} ms to \
             make: it keeps what it compiles; --kernel names fewer",
            took.as_secs_f64(),
            module.kernels().len(),
            module.made_in.as_secs_f64() * 1e3
        ));
    }
    Some(())
}

/// Registers the module's variables as memory of the program. If its code may allocate, memory is incomplete.
fn tell_memory(owner: Owner, variables: &[String], allocates: bool) -> Option<()> {
    let state = state().filter(|state| state.records_accesses())?;
    let change = |name: &String| {
        let place = CString::new(name.as_str()).ok().and_then(|name| driver::variable(owner, &name));
        let (kind, name) = (BufferKind::Variable, names::readable(name));
        place.map_or(MemoryChange::Unknown, |(address, bytes)| {
            MemoryChange::Got(Memory { address, bytes, kind, name })
        })
    };
    let changes: Vec<MemoryChange> = variables.iter().map(change).collect();
    let mut traces = lock(&state.traces);
    let unknown = allocates.then_some(MemoryChange::Unknown);
    changes.into_iter().chain(unknown).for_each(|change| traces.change_memory(change));
    Some(())
}

/// Loads an image as `fate` says. Falls back to the program's image.
///
/// # Safety
/// `load` makes the program's call, with another image if it gets one. The driver writes to `handle`.
unsafe fn load(
    fate: Option<Fate>,
    handle: *mut Handle,
    owner: impl Fn(usize) -> Owner,
    mut load: impl FnMut(Option<*const c_void>) -> Answer,
) -> Answer {
    let (mut variables, mut allocates) = (Vec::new(), false);
    let (traced, image, source) = match fate {
        None => return load(None),
        Some(Fate::Kept(source)) => (Err(String::new()), None, Some(source)),
        Some(Fate::Untraced(reason)) => (Err(reason), None, None),
        Some(Fate::Exchanged(text, module, assembled, architecture)) => {
            let started = Instant::now();
            let is_usable = |owner: Owner| {
                module.kernels().first().is_none_or(|kernel| driver::is_usable(owner, &kernel.traced_name))
            };
            let exchanged = assemble::load(text, &assembled, architecture, |image: &Image| {
                match load(Some(image.as_ptr())) {
                    SUCCESS => {
                        // SAFETY: the driver has written the handle.
                        let loaded = owner(unsafe { *handle } as usize);
                        usable(Some(loaded).filter(|loaded| !is_usable(*loaded)))
                    }
                    refused => refused,
                }
            });
            match exchanged {
                Ok((image, more)) => {
                    guarded(|| note(&module, more, started.elapsed()));
                    variables.clone_from(&module.variables);
                    allocates = module.allocates;
                    (Ok(module), Some(image), None)
                }
                Err(reason) => (Err(reason), None, None),
            }
        }
    };
    let answer = if image.is_some() { SUCCESS } else { load(None) };
    if answer == SUCCESS && !handle.is_null() {
        // SAFETY: the driver has written the handle.
        let owner = owner(unsafe { *handle } as usize);
        guarded(|| tell_memory(owner, &variables, allocates));
        guarded(|| {
            let mut registry = lock(&state()?.registry);
            match source {
                Some(source) => registry.add_source(owner, source),
                None => registry.add(owner, traced, image),
            }
            drop(registry);
            copies::make_all(owner)
        });
    }
    answer
}

/// # Safety
/// `image` is null or valid for the driver.
unsafe fn of_image(image: *const c_void) -> Option<Fate> {
    // SAFETY: guaranteed by the caller.
    fate(|architecture| unsafe { image::ptx_at(image, architecture) }.map_err(|error| error.to_string()))
}

/// # Safety
/// `path` is null or a C string.
unsafe fn of_file(path: *const c_char) -> Option<Fate> {
    if path.is_null() {
        return None;
    }
    // SAFETY: guaranteed by the caller.
    let path = OsStr::from_bytes(unsafe { CStr::from_ptr(path) }.to_bytes());
    fate(|architecture| {
        let bytes = std::fs::metadata(path).map_err(|error| error.to_string())?.len();
        if bytes > MAX_FILE_BYTES {
            return Err(format!("its file has {bytes} bytes, more than are read"));
        }
        let image = std::fs::read(path).map_err(|error| error.to_string())?;
        image::ptx_in(&image, architecture).map_err(|error| error.to_string())
    })
}

/// Option values as the program passed them. The driver overwrites some of them, and may be called twice.
struct Given {
    values: List,
    given: Vec<Handle>,
}

impl Given {
    /// # Safety
    /// `values` is null or has `count` elements.
    unsafe fn new(values: List, count: c_uint) -> Self {
        let count = if values.is_null() { 0 } else { count as usize };
        // SAFETY: guaranteed by the caller.
        let given = (0..count).map(|at| unsafe { *values.add(at) }).collect();
        Self { values, given }
    }

    /// # Safety
    /// The values are still writable.
    unsafe fn restore(&self) {
        for (at, value) in self.given.iter().enumerate() {
            // SAFETY: guaranteed by the caller.
            unsafe { *self.values.add(at) = *value };
        }
    }
}

type ModuleLoadData = unsafe extern "C" fn(*mut Handle, *const c_void) -> Answer;

pub(super) unsafe fn module(real: ModuleLoadData, module: *mut Handle, image: *const c_void) -> Answer {
    // SAFETY: the program's own call, possibly with a text as its image.
    unsafe { load(of_image(image), module, Owner::Module, |other| real(module, other.unwrap_or(image))) }
}

pub(super) unsafe fn module_fatbin(
    real: ModuleLoadData,
    module: *mut Handle,
    image: *const c_void,
) -> Answer {
    // SAFETY: the program's own call. A text is loaded by a function that takes any image.
    unsafe {
        load(of_image(image), module, Owner::Module, |other| match other {
            None => real(module, image),
            Some(other) => sys::cuModuleLoadData(module.cast(), other) as Answer,
        })
    }
}

pub(super) unsafe fn module_file(
    real: unsafe extern "C" fn(*mut Handle, *const c_char) -> Answer,
    module: *mut Handle,
    path: *const c_char,
) -> Answer {
    // SAFETY: the program's own call. A text is loaded by a function that takes any image.
    unsafe {
        load(of_file(path), module, Owner::Module, |other| match other {
            None => real(module, path),
            Some(other) => sys::cuModuleLoadData(module.cast(), other) as Answer,
        })
    }
}

pub(super) unsafe fn module_with_options(
    real: unsafe extern "C" fn(*mut Handle, *const c_void, c_uint, *mut c_int, List) -> Answer,
    module: *mut Handle,
    image: *const c_void,
    count: c_uint,
    options: *mut c_int,
    values: List,
) -> Answer {
    // SAFETY: the program's own call, possibly with a text as its image.
    unsafe {
        let given = Given::new(values, count);
        load(of_image(image), module, Owner::Module, |other| {
            given.restore();
            real(module, other.unwrap_or(image), count, options, values)
        })
    }
}

type LibraryLoadData = unsafe extern "C" fn(
    *mut Handle,
    *const c_void,
    *mut c_int,
    List,
    c_uint,
    *mut c_int,
    List,
    c_uint,
) -> Answer;

#[expect(clippy::too_many_arguments, reason = "the driver's")]
pub(super) unsafe fn library(
    real: LibraryLoadData,
    library: *mut Handle,
    image: *const c_void,
    options: *mut c_int,
    values: List,
    count: c_uint,
    library_options: *mut c_int,
    library_values: List,
    library_count: c_uint,
) -> Answer {
    // SAFETY: the program's own call, possibly with a text as its image.
    unsafe {
        let given = Given::new(values, count);
        load(of_image(image), library, Owner::Library, |other| {
            given.restore();
            let image = other.unwrap_or(image);
            real(library, image, options, values, count, library_options, library_values, library_count)
        })
    }
}

type LibraryLoadFromFile = unsafe extern "C" fn(
    *mut Handle,
    *const c_char,
    *mut c_int,
    List,
    c_uint,
    *mut c_int,
    List,
    c_uint,
) -> Answer;

#[expect(clippy::too_many_arguments, reason = "the driver's")]
pub(super) unsafe fn library_file(
    real: LibraryLoadFromFile,
    library: *mut Handle,
    path: *const c_char,
    options: *mut c_int,
    values: List,
    count: c_uint,
    library_options: *mut c_int,
    library_values: List,
    library_count: c_uint,
) -> Answer {
    // SAFETY: the program's own call. A text is loaded by a function that takes any image.
    unsafe {
        let given = Given::new(values, count);
        load(of_file(path), library, Owner::Library, |other| match other {
            None => {
                given.restore();
                real(library, path, options, values, count, library_options, library_values, library_count)
            }
            Some(other) => sys::cuLibraryLoadData(
                library.cast(),
                other,
                options.cast(),
                values,
                count,
                library_options.cast(),
                library_values,
                library_count,
            ) as Answer,
        })
    }
}

pub(super) unsafe fn unload_module(real: unsafe extern "C" fn(Handle) -> Answer, module: Handle) -> Answer {
    // SAFETY: the program's own call.
    unloaded(Owner::Module(module as usize), || unsafe { real(module) })
}

pub(super) unsafe fn unload_library(real: unsafe extern "C" fn(Handle) -> Answer, library: Handle) -> Answer {
    // SAFETY: the program's own call.
    unloaded(Owner::Library(library as usize), || unsafe { real(library) })
}

/// Unloads a module or library, then its copies in other modules. Its image lives until then.
fn unloaded(owner: Owner, unload: impl FnOnce() -> Answer) -> Answer {
    let code: Option<Arc<Code>> =
        guarded(|| state().and_then(|state| lock(&state.registry).remove(owner))).flatten();
    let answer = unload();
    guarded(|| code.map(|code| code.unload_copies()));
    answer
}
