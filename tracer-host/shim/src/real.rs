//! Finds the system's `dlsym` and `dlvsym` in the symbol tables of loaded libraries. This library exports the
//! same names, so a look-up with `dlsym` would find its own.

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

use libc::{Elf64_Addr, Elf64_Phdr, Elf64_Sym, c_char, c_int, dl_phdr_info, size_t};

/// The system's `dlsym` and `dlvsym`; null until they are found. The replacements jump to them.
pub(crate) static DLSYM: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
pub(crate) static DLVSYM: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// Libraries with these functions: the C library, and `libdl` before glibc 2.34.
const LIBRARIES: [&[u8]; 2] = [b"libc.so.6", b"libdl.so.2"];

const PT_DYNAMIC: u32 = 2;
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_GNU_HASH: i64 = 0x6fff_fef5;

/// # Safety
/// `handle` is valid for `dlsym`.
pub(crate) unsafe fn dlsym(handle: *mut c_void, name: &CStr) -> *mut c_void {
    find();
    let real = DLSYM.load(Ordering::Acquire);
    if real.is_null() {
        return real;
    }
    // SAFETY: the system's function of this name has this type.
    let real = unsafe {
        std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void>(
            real,
        )
    };
    // SAFETY: guaranteed by the caller.
    unsafe { real(handle, name.as_ptr()) }
}

/// Finds both functions, once.
pub(crate) fn find() {
    if DLSYM.load(Ordering::Acquire).is_null() {
        // SAFETY: the callback has the signature that `dl_iterate_phdr` needs.
        unsafe { libc::dl_iterate_phdr(Some(look), std::ptr::null_mut()) };
    }
}

#[derive(Clone, Copy)]
struct Symbols {
    base: u64,
    strings: *const u8,
    symbols: *const Elf64_Sym,
    hash: *const u32,
}

unsafe extern "C" fn look(info: *mut dl_phdr_info, _: size_t, _: *mut c_void) -> c_int {
    // SAFETY: `info` describes a library that stays loaded: the C library is never unloaded.
    unsafe {
        let info = &*info;
        if info.dlpi_name.is_null() {
            return 0;
        }
        let path = CStr::from_ptr(info.dlpi_name).to_bytes();
        let file = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
        if LIBRARIES.contains(&file)
            && let Some(symbols) = Symbols::new(info)
        {
            for (name, slot) in [(c"dlvsym", &DLVSYM), (c"dlsym", &DLSYM)] {
                if let Some(found) = symbols.find(name.to_bytes()) {
                    slot.store(found, Ordering::Release);
                }
            }
        }
    }
    0
}

impl Symbols {
    /// # Safety
    /// The library stays loaded.
    unsafe fn new(info: &dl_phdr_info) -> Option<Self> {
        let base = info.dlpi_addr;
        // SAFETY: the program headers and the dynamic section of a loaded library.
        unsafe {
            let headers: &[Elf64_Phdr] = std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into());
            let dynamic = headers.iter().find(|header| header.p_type == PT_DYNAMIC)?;
            let mut entry = (base + dynamic.p_vaddr) as *const [i64; 2];
            let (mut strings, mut symbols, mut hash) = (0, 0, 0);
            loop {
                let [tag, value] = *entry;
                match tag {
                    0 => break,
                    DT_STRTAB => strings = value as u64,
                    DT_SYMTAB => symbols = value as u64,
                    DT_GNU_HASH => hash = value as u64,
                    _ => {}
                }
                entry = entry.add(1);
            }
            if strings == 0 || symbols == 0 || hash == 0 {
                return None;
            }
            // Most loaders replace offsets in the dynamic section by addresses.
            let absolute = |at: u64| if at < base { base + at } else { at };
            Some(Self {
                base,
                strings: absolute(strings) as *const u8,
                symbols: absolute(symbols) as *const Elf64_Sym,
                hash: absolute(hash) as *const u32,
            })
        }
    }

    /// Finds a function by name. If it has several versions, any of them will do: they have the same code.
    ///
    /// # Safety
    /// The library stays loaded.
    unsafe fn find(&self, name: &[u8]) -> Option<*mut c_void> {
        // SAFETY: the tables of a loaded library. The GNU hash section has a header of four words, a Bloom
        // filter of 64-bit words, the buckets, and the chains.
        unsafe {
            let [buckets, first, filter, _] = *self.hash.cast::<[u32; 4]>();
            if buckets == 0 {
                return None;
            }
            let bucket_list = self.hash.add(4 + 2 * filter as usize);
            let chains = bucket_list.add(buckets as usize);
            let wanted = gnu_hash(name);
            let mut index = *bucket_list.add((wanted % buckets) as usize);
            if index < first {
                return None;
            }
            loop {
                let hash = *chains.add((index - first) as usize);
                let symbol = &*self.symbols.add(index as usize);
                let found = CStr::from_ptr(self.strings.add(symbol.st_name as usize).cast());
                if hash | 1 == wanted | 1 && symbol.st_shndx != 0 && found.to_bytes() == name {
                    return Some((self.base + symbol.st_value) as Elf64_Addr as *mut c_void);
                }
                if hash & 1 != 0 {
                    return None;
                }
                index += 1;
            }
        }
    }
}

fn gnu_hash(name: &[u8]) -> u32 {
    name.iter().fold(5381, |hash: u32, byte| hash.wrapping_mul(33).wrapping_add(u32::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_functions_are_found_and_answer_as_the_linked_ones() {
        find();
        // SAFETY: plain look-ups of a function that the C library has.
        unsafe {
            let linked = libc::dlsym(libc::RTLD_DEFAULT, c"getpid".as_ptr());
            assert!(!linked.is_null());
            assert_eq!(dlsym(libc::RTLD_DEFAULT, c"getpid"), linked);
            assert!(dlsym(libc::RTLD_DEFAULT, c"warptrace_has_no_such_function").is_null());
        }
        assert!(!DLVSYM.load(Ordering::Acquire).is_null());
    }

    #[test]
    fn names_are_hashed_as_the_section_says() {
        for (name, hash) in [("", 0x1505), ("printf", 0x156b_2bb8), ("exit", 0x7c96_7e3f)] {
            assert_eq!(gnu_hash(name.as_bytes()), hash, "{name}");
        }
    }
}
