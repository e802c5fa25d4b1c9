//! Images that the program loads: the driver gets the text with traced copies instead, if there can be one.

use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_uint, c_void};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cudarc::driver::sys;

use super::{Handle, List};
use crate::driver::{self, Answer, SUCCESS};
use crate::exchange::{TracedModule, exchange};
use crate::image::{self, Found};
use crate::inside::guarded;
use crate::state::{Code, Owner, lock, state};

/// Larger files of images are loaded as they are.
const MAX_FILE_BYTES: u64 = 1 << 30;

/// Loads that take longer are told.
const LONG_LOAD: Duration = Duration::from_millis(250);

/// What is loaded instead of an image, or why the image is.
type Exchanged = Result<(CString, TracedModule), String>;

/// Makes the text of an image; `None` if nothing is traced.
fn exchanged(find: impl FnOnce(u32) -> Result<Found, String>) -> Option<Exchanged> {
    guarded(|| {
        let state = state()?;
        let architecture = driver::architecture();
        if architecture == 0 {
            return Some(Err("the driver does not say what device it is for".to_owned()));
        }
        let found = match find(architecture) {
            Ok(found) => found,
            Err(reason) => return Some(Err(reason)),
        };
        // Ids are given under the lock: no two modules have the same.
        let mut registry = lock(&state.registry);
        let Some(first) = registry.first_id() else {
            return Some(Err("all 65,535 location ids are taken by modules before it".to_owned()));
        };
        let started = Instant::now();
        let mut made = exchange(&found, &state.settings, first, architecture);
        if let Ok((_, module)) = &mut made {
            module.made_in = started.elapsed();
            registry.take_ids(module);
        }
        Some(made)
    })
    .unwrap_or_else(|| Some(Err("the tracer failed on it".to_owned())))
}

/// Says that the program runs other code than it would alone.
fn note_older(module: &TracedModule) -> Option<()> {
    let (ptx, code) = module.older?;
    lock(&state()?.summary).note(format!(
        "its PTX is for compute_{ptx}, its machine code for sm_{code}: what depends on __CUDA_ARCH__ may differ from the \
         program alone; build with code=compute_{code}, too"
    ));
    Some(())
}

/// Says how long a module takes to load, if it is long: the driver compiles it, once.
fn timed(module: &TracedModule, load: impl FnOnce() -> Answer) -> Answer {
    let started = Instant::now();
    let answer = load();
    let took = started.elapsed();
    if took >= LONG_LOAD {
        guarded(|| {
            lock(&state()?.summary).note(format!(
                "the driver took {:.1} s to load a module of which {} kernels have trace points, which took {:.0} ms to \
                 make: it keeps what it compiles; --kernel names fewer",
                took.as_secs_f64(),
                module.kernels().len(),
                module.made_in.as_secs_f64() * 1e3
            ));
            Some(())
        });
    }
    answer
}

/// Loads: what was made of the image, else the image.
///
/// # Safety
/// `load` makes the program's own call with another image or, for `None`, as it is; `handle` is where that writes.
unsafe fn load(
    exchanged: Option<Exchanged>,
    handle: *mut Handle,
    owner: impl FnOnce(usize) -> Owner,
    mut load: impl FnMut(Option<&CStr>) -> Answer,
) -> Answer {
    let Some(exchanged) = exchanged else { return load(None) };
    let (answer, traced, text) = match exchanged {
        Err(reason) => (load(None), Err(reason), None),
        Ok((text, module)) => match timed(&module, || load(Some(&text))) {
            SUCCESS => {
                guarded(|| note_older(&module));
                (SUCCESS, Ok(module), Some(text))
            }
            refused => {
                let reason = format!("the driver refused its PTX with trace points (error {refused})");
                (load(None), Err(reason), None)
            }
        },
    };
    if answer == SUCCESS && !handle.is_null() {
        // SAFETY: the driver has written the handle.
        let handle = unsafe { *handle } as usize;
        guarded(|| state().map(|state| lock(&state.registry).add(owner(handle), traced, text)));
    }
    answer
}

/// Reads the PTX of an image in memory.
///
/// # Safety
/// The image is one that the driver takes.
unsafe fn of_image(image: *const c_void) -> Option<Exchanged> {
    // SAFETY: the caller's promise.
    exchanged(|architecture| unsafe { image::ptx_at(image, architecture) }.map_err(|error| error.to_string()))
}

/// Reads the PTX of an image in a file.
///
/// # Safety
/// The path is a string.
unsafe fn of_file(path: *const c_char) -> Option<Exchanged> {
    if path.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    let path = OsStr::from_bytes(unsafe { CStr::from_ptr(path) }.to_bytes());
    exchanged(|architecture| {
        let bytes = std::fs::metadata(path).map_err(|error| error.to_string())?.len();
        if bytes > MAX_FILE_BYTES {
            return Err(format!("its file has {bytes} bytes, more than are read"));
        }
        let image = std::fs::read(path).map_err(|error| error.to_string())?;
        image::ptx_in(&image, architecture).map_err(|error| error.to_string())
    })
}

/// Values of options as the program gave them: the driver writes some of them, and may be asked twice.
struct Given {
    values: List,
    given: Vec<Handle>,
}

impl Given {
    /// Copies them.
    ///
    /// # Safety
    /// There are so many.
    unsafe fn of(values: List, count: c_uint) -> Self {
        let count = if values.is_null() { 0 } else { count as usize };
        // SAFETY: the caller's promise.
        let given = (0..count).map(|at| unsafe { *values.add(at) }).collect();
        Self { values, given }
    }

    /// Makes them again what they were.
    ///
    /// # Safety
    /// They are still there.
    unsafe fn restore(&self) {
        for (at, value) in self.given.iter().enumerate() {
            // SAFETY: the caller's promise.
            unsafe { *self.values.add(at) = *value };
        }
    }
}

type ModuleLoadData = unsafe extern "C" fn(*mut Handle, *const c_void) -> Answer;

pub(super) unsafe fn module(real: ModuleLoadData, module: *mut Handle, image: *const c_void) -> Answer {
    // SAFETY: the program's own call; a text instead of its image is one, too.
    unsafe {
        load(of_image(image), module, Owner::Module, |text| {
            real(module, text.map_or(image, |text| text.as_ptr().cast()))
        })
    }
}

pub(super) unsafe fn module_fatbin(
    real: ModuleLoadData,
    module: *mut Handle,
    image: *const c_void,
) -> Answer {
    // SAFETY: as above; a text is loaded by the function that takes any image.
    unsafe {
        load(of_image(image), module, Owner::Module, |text| match text {
            None => real(module, image),
            Some(text) => sys::cuModuleLoadData(module.cast(), text.as_ptr().cast()) as Answer,
        })
    }
}

pub(super) unsafe fn module_file(
    real: unsafe extern "C" fn(*mut Handle, *const c_char) -> Answer,
    module: *mut Handle,
    path: *const c_char,
) -> Answer {
    // SAFETY: as above.
    unsafe {
        load(of_file(path), module, Owner::Module, |text| match text {
            None => real(module, path),
            Some(text) => sys::cuModuleLoadData(module.cast(), text.as_ptr().cast()) as Answer,
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
    // SAFETY: as above.
    unsafe {
        let given = Given::of(values, count);
        load(of_image(image), module, Owner::Module, |text| {
            given.restore();
            real(module, text.map_or(image, |text| text.as_ptr().cast()), count, options, values)
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
    // SAFETY: as above.
    unsafe {
        let given = Given::of(values, count);
        load(of_image(image), library, Owner::Library, |text| {
            given.restore();
            let image = text.map_or(image, |text| text.as_ptr().cast());
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
    // SAFETY: as above.
    unsafe {
        let given = Given::of(values, count);
        load(of_file(path), library, Owner::Library, |text| match text {
            None => {
                given.restore();
                real(library, path, options, values, count, library_options, library_values, library_count)
            }
            Some(text) => sys::cuLibraryLoadData(
                library.cast(),
                text.as_ptr().cast(),
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
    let _text = forget(Owner::Module(module as usize));
    // SAFETY: the program's own call.
    unsafe { real(module) }
}

pub(super) unsafe fn unload_library(real: unsafe extern "C" fn(Handle) -> Answer, library: Handle) -> Answer {
    let _text = forget(Owner::Library(library as usize));
    // SAFETY: the program's own call.
    unsafe { real(library) }
}

/// Forgets a module or library that the driver is about to unload; its text stays until that is done.
fn forget(owner: Owner) -> Option<Arc<Code>> {
    guarded(|| state().and_then(|state| lock(&state.registry).remove(owner))).flatten()
}
