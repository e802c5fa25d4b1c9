//! NVTX ranges. Version 3 of NVTX loads the library that `NVTX_INJECTION64_PATH` names. This library then
//! adds its functions to the tables of NVTX.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr::without_provenance_mut;

use warptrace_abi::run::RUN_FILE;
use warptrace_format::file::limits::MAX_LABEL_BYTES;

use crate::inside::guarded;
use crate::ranges::{self, Message};

/// The number of a domain or a registered string.
type Handle = *mut c_void;
/// Limit on the characters of a message.
const MAX_CHARACTERS: usize = MAX_LABEL_BYTES;
/// Result of a call that failed.
const NOTHING: c_int = -1;

/// Number of the table with [`Callbacks`].
const CALLBACKS: u32 = 1;
/// Numbers of the function tables: without domains, and with domains.
const CORE: c_int = 1;
const CORE2: c_int = 5;
/// Number of the extension for payloads.
const PAYLOADS: u16 = 2;

#[repr(C)]
struct Callbacks {
    size: usize,
    table: Option<unsafe extern "C" fn(c_int, *mut *mut *mut *const c_void, *mut c_uint) -> c_int>,
}

#[repr(C)]
struct Attributes {
    version: u16,
    size: u16,
    category: u32,
    color: [u32; 2],
    payload_type: [i32; 2],
    payload: u64,
    message_type: i32,
    message: *const c_void,
}

/// Called by each library of the program that uses NVTX, before its first range.
///
/// # Safety
/// `tables` is a function of NVTX that returns tables by number.
#[cfg_attr(not(test), unsafe(no_mangle))]
#[allow(non_snake_case, reason = "NVTX looks for this name")]
pub(crate) unsafe extern "C" fn InitializeInjectionNvtx2(
    tables: Option<unsafe extern "C" fn(u32) -> *const c_void>,
) -> c_int {
    let install = || {
        std::env::var_os(RUN_FILE).filter(|file| !file.is_empty())?;
        // SAFETY: guaranteed by the caller. The table begins with its size.
        let callbacks = unsafe { tables?(CALLBACKS).cast::<Callbacks>().as_ref()? };
        let table = (callbacks.size >= size_of::<Callbacks>()).then_some(callbacks.table)??;
        for (module, functions) in [(CORE, core()), (CORE2, with_domains())] {
            let (mut slots, mut count) = (std::ptr::null_mut(), 0);
            // SAFETY: the function writes to these two variables.
            if unsafe { table(module, &raw mut slots, &raw mut count) } == 0 || slots.is_null() {
                continue;
            }
            for &(number, function) in functions.iter().filter(|(number, _)| *number < count as usize) {
                // SAFETY: the table has `count` elements. Each is null or the address of a function slot.
                unsafe {
                    if let Some(slot) = (*slots.add(number)).as_mut() {
                        *slot = function;
                    }
                }
            }
        }
        Some(())
    };
    c_int::from(guarded(install).flatten().is_some())
}

/// A part of an extension's function table.
#[repr(C)]
struct Segment {
    number: usize,
    count: usize,
    slots: *mut *const c_void,
}

/// An extension of NVTX: the first fields of `nvtxExtModuleInfo_t`.
#[repr(C)]
pub(crate) struct Extension {
    version: u16,
    size: u16,
    number: u16,
    compatible: u16,
    count: usize,
    segments: *const Segment,
}

/// Called by each library of the program before its first use of an extension. Returns 0 for all extensions
/// but payloads, with which NCCL ends ranges that it began without them.
///
/// # Safety
/// `extension` is NVTX's description of an extension.
#[cfg_attr(not(test), unsafe(no_mangle))]
#[allow(non_snake_case, reason = "NVTX looks for this name")]
pub(crate) unsafe extern "C" fn InitializeInjectionNvtxExtension(extension: *const Extension) -> c_int {
    let install = || {
        std::env::var_os(RUN_FILE).filter(|file| !file.is_empty())?;
        // SAFETY: guaranteed by the caller. Each segment has `count` slots.
        unsafe {
            let extension = extension.as_ref().filter(|extension| extension.number == PAYLOADS)?;
            let Segment { count, slots, .. } = extension.segments.as_ref().filter(|_| extension.count > 0)?;
            for (number, function) in with_payloads().into_iter().filter(|(number, _)| number < count) {
                *slots.add(number) = function;
            }
        }
        Some(())
    };
    c_int::from(guarded(install).flatten().is_some())
}

/// # Safety
/// `text` is null or a C string.
unsafe fn narrow(text: *const c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: guaranteed by the caller.
    let bytes = unsafe { CStr::from_ptr(text) }.to_bytes();
    Some(String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_CHARACTERS)]).into_owned())
}

/// # Safety
/// `text` is null or ends in a zero character.
unsafe fn wide(text: *const libc::wchar_t) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: guaranteed by the caller. Nothing after the zero is read.
    let characters = (0..MAX_CHARACTERS).map(|at| unsafe { *text.add(at) }).take_while(|unit| *unit != 0);
    let character = |unit: libc::wchar_t| u32::try_from(unit).ok().and_then(char::from_u32);
    Some(characters.map(|unit| character(unit).unwrap_or(char::REPLACEMENT_CHARACTER)).collect())
}

fn message(text: Option<String>) -> Message {
    text.map_or(Message::Missing, Message::Text)
}

/// # Safety
/// `attributes` is null or has as many bytes as its size field says.
unsafe fn described(attributes: *const Attributes) -> Message {
    // SAFETY: guaranteed by the caller. Every version of the structure has the size field.
    unsafe {
        if attributes.is_null() || usize::from((*attributes).size) < size_of::<Attributes>() {
            return Message::Missing;
        }
        let Attributes { message_type, message: text, .. } = *attributes;
        match message_type {
            1 => message(narrow(text.cast())),
            2 => message(wide(text.cast())),
            3 => Message::Registered(text.addr()),
            _ => Message::Missing,
        }
    }
}

fn push_message(domain: usize, message: Message) -> c_int {
    let depth = guarded(|| ranges::push(domain, message));
    depth.and_then(|depth| c_int::try_from(depth).ok()).unwrap_or(NOTHING)
}

fn pop_of(domain: usize) -> c_int {
    let depth = guarded(|| ranges::pop(domain)).flatten();
    depth.and_then(|depth| c_int::try_from(depth).ok()).unwrap_or(NOTHING)
}

fn start_message(domain: usize, message: Message) -> u64 {
    guarded(|| ranges::start(domain, message)).unwrap_or_default()
}

fn registered(domain: Handle, text: Option<String>) -> Handle {
    let number = guarded(|| ranges::register(domain.addr(), &text.unwrap_or_default()));
    without_provenance_mut(number.unwrap_or_default())
}

fn domain(name: Option<String>) -> Handle {
    let number = guarded(|| name.map_or(0, |name| ranges::domain(&name)));
    without_provenance_mut(number.unwrap_or_default())
}

macro_rules! functions {
    ($(
        $(#[$doc:meta])*
        $table:ident: $($number:literal $name:ident($($arg:ident: $ty:ty),*) $(-> $result:ty)? $body:block)*;
    )*) => {$(
        $(
            #[allow(unused_unsafe, reason = "some take no addresses")]
            unsafe extern "C" fn $name($($arg: $ty),*) $(-> $result)? {
                // SAFETY: NVTX passes its caller's arguments, which are valid for NVTX.
                unsafe { $body }
            }
        )*

        $(#[$doc])*
        fn $table() -> Vec<(usize, *const c_void)> {
            vec![$(($number, $name as *const c_void)),*]
        }
    )*};
}

functions! {
    /// Functions for ranges without domains, by number.
    core:
        4 start_with(attributes: *const Attributes) -> u64 { start_message(0, described(attributes)) }
        5 start_narrow(text: *const c_char) -> u64 { start_message(0, message(narrow(text))) }
        6 start_wide(text: *const libc::wchar_t) -> u64 { start_message(0, message(wide(text))) }
        7 end(number: u64) { let _ = guarded(|| ranges::end(number)); }
        8 push_with(attributes: *const Attributes) -> c_int { push_message(0, described(attributes)) }
        9 push_narrow(text: *const c_char) -> c_int { push_message(0, message(narrow(text))) }
        10 push_wide(text: *const libc::wchar_t) -> c_int { push_message(0, message(wide(text))) }
        11 pop() -> c_int { pop_of(0) };
    /// Functions for ranges with domains, by number.
    with_domains:
        2 domain_start(domain: Handle, attributes: *const Attributes) -> u64 {
            start_message(domain.addr(), described(attributes))
        }
        3 domain_end(_domain: Handle, number: u64) { end(number); }
        4 domain_push(domain: Handle, attributes: *const Attributes) -> c_int {
            push_message(domain.addr(), described(attributes))
        }
        5 domain_pop(domain: Handle) -> c_int { pop_of(domain.addr()) }
        10 register_narrow(domain: Handle, text: *const c_char) -> Handle { registered(domain, narrow(text)) }
        11 register_wide(domain: Handle, text: *const libc::wchar_t) -> Handle { registered(domain, wide(text)) }
        12 domain_narrow(name: *const c_char) -> Handle { domain(narrow(name)) }
        13 domain_wide(name: *const libc::wchar_t) -> Handle { domain(wide(name)) };
    /// Functions for ranges with payloads, by number. Payloads are ignored, and so are the messages in them.
    with_payloads:
        3 payload_push(domain: Handle, _data: *const c_void, _count: usize) -> c_int {
            push_message(domain.addr(), Message::Missing)
        }
        4 payload_pop(domain: Handle, _data: *const c_void, _count: usize) -> c_int { pop_of(domain.addr()) }
        5 payload_start(domain: Handle, _data: *const c_void, _count: usize) -> u64 {
            start_message(domain.addr(), Message::Missing)
        }
        6 payload_end(_domain: Handle, number: u64, _data: *const c_void, _count: usize) { end(number); };
}
