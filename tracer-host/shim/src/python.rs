//! Python call stacks of launching threads.
//!
//! PyTorch and Triton release the interpreter lock before a launch. Therefore the stack is read from memory,
//! without calls that need the lock. Only the launching thread changes its chain of frames, and it is in the
//! launch. Frames keep their code objects alive, which keep their names and tables. These never change.
//!
//! Layouts are from CPython 3.11 to 3.14 on 64-bit Linux (`Include/internal/pycore_frame.h`,
//! `Include/cpython/code.h`, `Include/cpython/unicodeobject.h`). Other versions, free-threaded builds, and
//! interpreters without exported symbols give no stacks. Neither does an interpreter that is finalizing:
//! it frees the frames of other threads.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::{Arc, Mutex, OnceLock};

use rustc_hash::FxHashMap;
use warptrace_format::file::StackFrame;
use warptrace_format::file::limits::{MAX_STACK_DEPTH, MAX_STACKS};

use crate::real;
use crate::state::lock;

/// Least `_PyInterpreterFrame::owner` of frames without Python code, which separate calls through C.
const OWNED_BY_INTERPRETER: u8 = 3;
/// Offset of `ob_type` in `PyObject`.
const OBJECT_TYPE: usize = 8;
/// Offset of `ob_size` in `PyVarObject`, and of `length` in `PyASCIIObject`.
const LENGTH: usize = 16;
/// Offset of `ob_sval` in `PyBytesObject`.
const BYTES: usize = 32;
/// Offset of `state` in `PyASCIIObject`. Bits 2 to 4 are the kind, bit 6 says whether the text is ASCII.
const TEXT_STATE: usize = 32;
/// Offsets of `co_filename`, `co_qualname` and `co_linetable` in `PyCodeObject`.
const CODE_FILE: usize = 112;
const CODE_NAME: usize = 128;
const CODE_LINES: usize = 136;

/// Offsets that differ between versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layout {
    /// Path from `PyThreadState` to the innermost frame.
    frame: (usize, Option<usize>),
    /// `_PyInterpreterFrame`: `f_code` or `f_executable`, `previous`, `owner`.
    code: usize,
    previous: usize,
    owner: usize,
    /// `_PyInterpreterFrame`: `prev_instr` or `instr_ptr`.
    instruction: usize,
    /// `PyCodeObject`: `co_version` where it exists, `co_firstlineno`, `co_code_adaptive`.
    version: Option<usize>,
    first_line: usize,
    instructions: usize,
    /// Sizes of `PyASCIIObject` and `PyCompactUnicodeObject`.
    texts: [usize; 2],
}

const LAYOUT_3_12: Layout = Layout {
    frame: (56, Some(0)),
    code: 0,
    previous: 8,
    owner: 70,
    instruction: 56,
    version: Some(92),
    first_line: 68,
    instructions: 192,
    texts: [40, 56],
};

impl Layout {
    /// Returns the layout for a `Py_Version` of `0xMMmm____`; `None` if it is unknown.
    const fn of(version: u32) -> Option<Self> {
        Some(match version >> 16 {
            0x030b => Self {
                frame: (56, Some(8)),
                code: 32,
                previous: 48,
                owner: 69,
                version: None,
                first_line: 72,
                instructions: 184,
                texts: [48, 72],
                ..LAYOUT_3_12
            },
            0x030c => LAYOUT_3_12,
            0x030d => Self { frame: (72, None), instructions: 200, ..LAYOUT_3_12 },
            0x030e => Self { frame: (72, None), owner: 74, instructions: 208, ..LAYOUT_3_12 },
            _ => return None,
        })
    }
}

struct Python {
    layout: Layout,
    /// Address of `PyCode_Type`.
    code_type: usize,
    thread_state: unsafe extern "C" fn() -> *const c_void,
    is_finalizing: unsafe extern "C" fn() -> c_int,
}

/// A frame: code object, its version (unique, or 0 for none), byte offset of the instruction, first line.
type Call = (usize, u32, usize, u32);

type Stacks = FxHashMap<Box<[Call]>, Arc<[StackFrame]>>;

static STACKS: Mutex<Option<Stacks>> = Mutex::new(None);

/// Returns the Python stack of this thread, innermost frame first; `None` if none can be read.
pub(crate) fn stack() -> Option<Arc<[StackFrame]>> {
    static PYTHON: OnceLock<Option<Python>> = OnceLock::new();
    let python = PYTHON.get_or_init(Python::find).as_ref()?;
    let mut calls = [Call::default(); MAX_STACK_DEPTH];
    // SAFETY: this thread is in a call of the interpreter, or was never in one.
    let calls = unsafe { python.calls(&mut calls) }?;
    let mut stacks = lock(&STACKS);
    let stacks = stacks.get_or_insert_default();
    // Without a version, a new code object may have the address of an earlier one.
    let are_versioned = calls.iter().all(|(_, version, ..)| *version != 0);
    // SAFETY: the code objects belong to this thread's frames.
    let is_known = |known: &&Arc<[_]>| are_versioned || unsafe { python.are_named(calls, known) };
    if let Some(known) = stacks.get(calls).filter(is_known) {
        return Some(Arc::clone(known));
    }
    // SAFETY: this thread's frames keep the code objects alive.
    let frames: Arc<[_]> = calls.iter().map(|call| unsafe { python.frame(*call) }).collect();
    if stacks.len() < MAX_STACKS {
        stacks.insert(calls.into(), Arc::clone(&frames));
    }
    Some(frames)
}

impl Python {
    fn find() -> Option<Self> {
        let find = |name: &CStr| {
            // SAFETY: the handle stands for all global symbols.
            let found = unsafe { real::dlsym(libc::RTLD_DEFAULT, name) };
            (!found.is_null()).then_some(found)
        };
        let version = find(c"Py_Version")?;
        let [text, thread_state, code_type] =
            [find(c"Py_GetVersion")?, find(c"PyGILState_GetThisThreadState")?, find(c"PyCode_Type")?];
        let is_finalizing = find(c"Py_IsFinalizing").or_else(|| find(c"_Py_IsFinalizing"))?;
        // SAFETY: `Py_Version` is a constant of CPython from 3.11 on, and the functions have these types.
        let (version, text, thread_state, is_finalizing) = unsafe {
            (
                version.cast::<u32>().read(),
                std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> *const c_char>(text),
                std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> *const c_void>(thread_state),
                std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> c_int>(is_finalizing),
            )
        };
        let layout = Layout::of(version)?;
        // SAFETY: the function returns a text that is never freed.
        let text = unsafe { CStr::from_ptr(text()) };
        let is_free_threaded = text.to_string_lossy().contains("free-threading");
        (!is_free_threaded).then_some(Self {
            layout,
            code_type: code_type.addr(),
            thread_state,
            is_finalizing,
        })
    }

    /// Reads this thread's frames, innermost first.
    ///
    /// # Safety
    /// This thread must be in a call of a C function, so that it is not changing its frames.
    unsafe fn calls<'a>(&self, calls: &'a mut [Call]) -> Option<&'a [Call]> {
        // SAFETY: both functions only read the runtime's state and the thread's own storage.
        let state = unsafe {
            if (self.is_finalizing)() != 0 {
                return None;
            }
            (self.thread_state)()
        };
        let state = known(state.expose_provenance())?;
        let Layout { code: code_at, previous, owner, instruction, version, first_line, instructions, .. } =
            self.layout;
        let mut count = 0;
        // SAFETY: the thread's own frames and its interpreter's offsets. The type identifies code objects.
        unsafe {
            let (at, inner) = self.layout.frame;
            let mut frame = read::<usize>(state + at);
            if let Some(inner) = inner {
                frame = read(known(frame)? + inner);
            }
            while let (Some(at), true) = (known(frame), count < calls.len()) {
                if read::<u8>(at + owner) < OWNED_BY_INTERPRETER {
                    // The lowest bits of a reference say how it is counted.
                    let code = known(read::<usize>(at + code_at) & !3)?;
                    if read::<usize>(code + OBJECT_TYPE) != self.code_type {
                        return None;
                    }
                    let offset = read::<usize>(at + instruction).wrapping_sub(code + instructions);
                    let version = version.map_or(0, |version| read(code + version));
                    calls[count] = (code, version, offset, read(code + first_line));
                    count += 1;
                }
                frame = read(at + previous);
            }
        }
        (count > 0).then_some(&calls[..count])
    }

    /// Returns true if the code objects still have these names. Another object may be at the same address.
    ///
    /// # Safety
    /// The code objects must be alive.
    unsafe fn are_named(&self, calls: &[Call], frames: &[StackFrame]) -> bool {
        calls.iter().zip(frames).all(|((code, ..), frame)| {
            // SAFETY: the caller's promise.
            unsafe {
                self.is_text(read(code + CODE_FILE), &frame.file)
                    && self.is_text(read(code + CODE_NAME), &frame.function)
            }
        })
    }

    /// # Safety
    /// The code object must be alive.
    unsafe fn frame(&self, (code, _, offset, first_line): Call) -> StackFrame {
        // SAFETY: the caller's promise, and the code object holds its names and its table.
        unsafe {
            let table = read::<usize>(code + CODE_LINES);
            let table = std::slice::from_raw_parts(
                std::ptr::with_exposed_provenance::<u8>(table + BYTES),
                read(table + LENGTH),
            );
            StackFrame {
                function: self.text(read(code + CODE_NAME)),
                file: self.text(read(code + CODE_FILE)),
                line: line_at(table, offset, first_line),
            }
        }
    }

    /// Returns a text's address, number of characters, bytes per character, and whether it is ASCII.
    ///
    /// # Safety
    /// `text` must be a compact `PyUnicodeObject` that is alive.
    unsafe fn characters(&self, text: usize) -> (usize, usize, u32, bool) {
        // SAFETY: the caller's promise.
        let (state, length) = unsafe { (read::<u32>(text + TEXT_STATE), read(text + LENGTH)) };
        let is_ascii = state >> 6 & 1 == 1;
        (text + self.layout.texts[usize::from(!is_ascii)], length, state >> 2 & 7, is_ascii)
    }

    /// # Safety
    /// As for [`characters`](Self::characters).
    unsafe fn is_text(&self, text: usize, expected: &str) -> bool {
        // SAFETY: the caller's promise.
        unsafe {
            match self.characters(text) {
                (at, length, _, true) => {
                    std::slice::from_raw_parts(std::ptr::with_exposed_provenance::<u8>(at), length)
                        == expected.as_bytes()
                }
                _ => self.text(text) == expected,
            }
        }
    }

    /// # Safety
    /// As for [`characters`](Self::characters).
    unsafe fn text(&self, text: usize) -> String {
        // SAFETY: the caller's promise; the kind is the size of a character.
        unsafe {
            let (at, length, kind, _) = self.characters(text);
            let character = |index: usize| match kind {
                1 => u32::from(read::<u8>(at + index)),
                2 => u32::from(read::<u16>(at + 2 * index)),
                _ => read(at + 4 * index),
            };
            // Names that are not UTF-8 contain surrogates.
            let text = (0..length).map(|index| char::from_u32(character(index)).unwrap_or('\u{fffd}'));
            text.collect()
        }
    }
}

fn known(address: usize) -> Option<usize> {
    (address != 0).then_some(address)
}

/// # Safety
/// The address must hold a `T`.
unsafe fn read<T: Copy>(address: usize) -> T {
    // SAFETY: the caller's promise.
    unsafe { std::ptr::with_exposed_provenance::<T>(address).read_unaligned() }
}

/// Returns the line of an instruction from a location table (`InternalDocs/code_objects.md`); 0 for none.
fn line_at(table: &[u8], offset: usize, first_line: u32) -> u32 {
    let (mut line, mut end) = (i64::from(first_line), 0);
    let mut bytes = table.iter().copied();
    while let Some(first) = bytes.next() {
        let code = first >> 3 & 15;
        end += 2 * (usize::from(first & 7) + 1);
        let columns = match code {
            15 => 0,
            13 | 14 => {
                let delta = varint(&mut bytes);
                line += if delta & 1 == 1 { -((delta >> 1) as i64) } else { (delta >> 1) as i64 };
                if code == 14 {
                    (0..3).for_each(|_| _ = varint(&mut bytes));
                }
                0
            }
            10..=12 => {
                line += i64::from(code - 10);
                2
            }
            _ => 1,
        };
        (0..columns).for_each(|_| _ = bytes.next());
        if offset < end {
            return if code == 15 { 0 } else { u32::try_from(line).unwrap_or(0) };
        }
    }
    0
}

/// Reads a number with six bits per byte, lowest first.
fn varint(bytes: &mut impl Iterator<Item = u8>) -> u64 {
    let (mut value, mut shift) = (0, 0);
    for byte in bytes {
        value |= u64::from(byte & 63).checked_shl(shift).unwrap_or(0);
        shift += 6;
        if byte & 64 == 0 {
            break;
        }
    }
    value
}
