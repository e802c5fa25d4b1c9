//! Hooks for NVRTC. A program that asks for machine code gets PTX with line info. The driver loads either.

use std::collections::HashSet;
use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr::null;
use std::sync::Mutex;

use super::{Handle, Hook};
use crate::driver::{self, Answer, SUCCESS};
use crate::inside::guarded;
use crate::real;
use crate::state::{lock, state};

/// Options that name the architecture. The value follows after `=` or as the next argument.
const ARCHITECTURE: [&str; 3] = ["-arch", "--gpu-architecture", "--gpu-arch"];
/// Options with which NVRTC makes no PTX.
const NO_PTX: [&str; 4] = ["-dlto", "--dlink-time-opt", "-dlto=true", "--dlink-time-opt=true"];
/// Options that keep lines. The hook adds the first.
const LINES: [&str; 2] = ["-lineinfo", "--generate-line-info"];

/// NVRTC programs with PTX for which the application asked for machine code.
static WITHOUT_CUBIN: Mutex<Option<HashSet<usize>>> = Mutex::new(None);

fn is_without_cubin(program: Handle) -> bool {
    lock(&WITHOUT_CUBIN).as_ref().is_some_and(|programs| programs.contains(&(program as usize)))
}

fn note(program: Handle, without_cubin: bool) {
    let mut programs = lock(&WITHOUT_CUBIN);
    let programs = programs.get_or_insert_with(HashSet::new);
    if without_cubin {
        programs.insert(program as usize)
    } else {
        programs.remove(&(program as usize))
    };
}

/// Changes options to ask for PTX instead of machine code, and for lines. Returns the new options, and
/// whether the old ones ask for machine code; `None` if nothing changes.
fn for_ptx(options: &[&str]) -> Option<(Vec<String>, bool)> {
    if options.iter().any(|option| NO_PTX.contains(option)) {
        return None;
    }
    let mut changed: Vec<String> = Vec::with_capacity(options.len() + 1);
    let mut asked = false;
    let mut after_name = false;
    for option in options {
        let (name, value) = option.split_once('=').unwrap_or(("", option));
        let is_value = after_name || ARCHITECTURE.contains(&name);
        after_name = ARCHITECTURE.contains(option);
        match value.strip_prefix("sm_").filter(|_| is_value) {
            Some(number) => {
                let equals = if name.is_empty() { "" } else { "=" };
                changed.push(format!("{name}{equals}compute_{number}"));
                asked = true;
            }
            None => changed.push((*option).to_owned()),
        }
    }
    let has_lines = options.iter().any(|option| LINES.contains(option));
    if !has_lines {
        changed.push(LINES[0].to_owned());
    }
    (asked || !has_lines).then_some((changed, asked))
}

pub(super) unsafe fn compile(
    real: unsafe extern "C" fn(Handle, c_int, *const *const c_char) -> Answer,
    program: Handle,
    count: c_int,
    options: *const *const c_char,
) -> Answer {
    let changed = guarded(|| {
        state()?;
        // SAFETY: the program passes `count` strings.
        let words: Vec<&str> = unsafe {
            (0..usize::try_from(count).ok()?)
                .map(|at| CStr::from_ptr(*options.add(at)).to_str().ok())
                .collect::<Option<_>>()?
        };
        let (changed, asked) = for_ptx(&words)?;
        if asked && !driver_takes_ptx() {
            return None;
        }
        let changed: Result<Vec<CString>, _> = changed.into_iter().map(CString::new).collect();
        Some((changed.ok()?, asked))
    });
    if let Some((changed, asked)) = changed.flatten() {
        let pointers: Vec<*const c_char> = changed.iter().map(|option| option.as_ptr()).collect();
        // SAFETY: the program's own call, with other options.
        let answer =
            unsafe { real(program, c_int::try_from(pointers.len()).unwrap_or(count), pointers.as_ptr()) };
        if answer == SUCCESS {
            guarded(|| note(program, asked));
            return answer;
        }
    }
    guarded(|| note(program, false));
    // SAFETY: the program's own call.
    unsafe { real(program, count, options) }
}

/// Returns the path of a loaded NVRTC. A look-up by name alone would miss a library with local scope.
pub(super) fn loaded() -> Option<CString> {
    unsafe extern "C" fn look(
        info: *mut libc::dl_phdr_info,
        _size: usize,
        found: *mut std::ffi::c_void,
    ) -> c_int {
        // SAFETY: `info` describes a library; its name is null or a C string. `found` is the caller's.
        unsafe {
            let name = (*info).dlpi_name;
            if name.is_null() {
                return 0;
            }
            let path = CStr::from_ptr(name);
            let file = path.to_bytes().rsplit(|byte| *byte == b'/').next().unwrap_or_default();
            if !file.starts_with(b"libnvrtc.so") {
                return 0;
            }
            *found.cast::<Option<CString>>() = Some(path.to_owned());
            1
        }
    }
    let mut found = None::<CString>;
    // SAFETY: the callback has the signature that is needed, and `found` has the type that it writes.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut found).cast()) };
    found
}

/// Returns true if the driver supports this NVRTC's PTX. Of later versions, it loads only machine code.
fn driver_takes_ptx() -> bool {
    type Version = unsafe extern "C" fn(*mut c_int, *mut c_int) -> Answer;
    let Some(version) = beside::<Version>(Hook::nvrtcCompileProgram, c"nvrtcVersion") else { return true };
    let (mut major, mut minor) = (0, 0);
    // SAFETY: writes two numbers.
    let is_known = unsafe { version(&raw mut major, &raw mut minor) } == SUCCESS;
    !is_known || driver::version().is_none_or(|driver| 1000 * major + 10 * minor <= driver)
}

/// Returns another function of the library that has the hooked function.
fn beside<F: Copy>(hook: Hook, name: &CStr) -> Option<F> {
    let mut info = libc::Dl_info {
        dli_fname: null(),
        dli_fbase: std::ptr::null_mut(),
        dli_sname: null(),
        dli_saddr: std::ptr::null_mut(),
    };
    // SAFETY: the address is in a loaded library. `dlopen` returns that library, which stays loaded.
    let found = unsafe {
        if libc::dladdr(hook.real()?, &raw mut info) == 0 || info.dli_fname.is_null() {
            return None;
        }
        let library = libc::dlopen(info.dli_fname, libc::RTLD_NOW | libc::RTLD_NOLOAD);
        if library.is_null() {
            return None;
        }
        real::dlsym(library, name)
    };
    assert_eq!(size_of::<F>(), size_of_val(&found), "a function is an address");
    // SAFETY: both are addresses. The caller gives the type of the function.
    (!found.is_null()).then(|| unsafe { std::mem::transmute_copy(&found) })
}

type Size = unsafe extern "C" fn(Handle, *mut usize) -> Answer;
type Text = unsafe extern "C" fn(Handle, *mut c_char) -> Answer;

pub(super) unsafe fn cubin_size(real: Size, program: Handle, size: *mut usize) -> Answer {
    let ptx =
        || is_without_cubin(program).then(|| beside::<Size>(Hook::nvrtcGetCUBINSize, c"nvrtcGetPTXSize"));
    let ask = guarded(ptx).flatten().flatten().unwrap_or(real);
    // SAFETY: the program's own call, or the same for PTX.
    unsafe { ask(program, size) }
}

pub(super) unsafe fn cubin(real: Text, program: Handle, code: *mut c_char) -> Answer {
    let ptx = || is_without_cubin(program).then(|| beside::<Text>(Hook::nvrtcGetCUBIN, c"nvrtcGetPTX"));
    let ask = guarded(ptx).flatten().flatten().unwrap_or(real);
    // SAFETY: the program's own call, or the same for PTX, whose size it has got from `cubin_size`.
    unsafe { ask(program, code) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machine_code_is_asked_for_as_ptx() {
        for (options, changed, asked) in [
            (&["-arch=sm_90"][..], &["-arch=compute_90", "-lineinfo"][..], true),
            (
                &["--gpu-architecture", "sm_90a", "-lineinfo"],
                &["--gpu-architecture", "compute_90a", "-lineinfo"],
                true,
            ),
            (&["--gpu-architecture=compute_80"], &["--gpu-architecture=compute_80", "-lineinfo"], false),
            (&["-DNAME=sm_90"], &["-DNAME=sm_90", "-lineinfo"], false),
            (&[], &["-lineinfo"], false),
        ] {
            let expected = changed.iter().map(|option| (*option).to_owned()).collect();
            assert_eq!(for_ptx(options), Some((expected, asked)), "{options:?}");
        }
        assert_eq!(for_ptx(&["--generate-line-info"]), None);
        assert_eq!(for_ptx(&["-arch=sm_90", "-dlto"]), None);
    }
}
