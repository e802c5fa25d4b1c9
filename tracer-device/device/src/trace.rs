//! Functions that `#[warptrace::kernels]` inserts. Kernels do not use this module directly. Its names may
//! change with the macro. On the GPU, each item compiles to a comment or to nothing. On the host, each item
//! does nothing outside a launch.

use core::ops::ControlFlow;
use core::task::Poll;

pub use crate::arrays::slice;
#[cfg(not(target_arch = "nvptx64"))]
use crate::simt::host::in_launch;

/// Traces location `ID`: lanes that arrive here together create one event. Never changes a kernel's results.
///
/// # On the GPU
/// The compiled kernel contains the comment `// warptrace.loc 3` and no instruction. For a traced launch,
/// `warptrace-ptx` replaces it with recording instructions in the optimized code, so the rest is the code
/// that runs untraced. The optimizer may duplicate the comment with the surrounding code (as in an unrolled
/// loop). It does not remove it, move it across a branch, or merge it with another one.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn point<const ID: u16>() {
    const { assert!(ID != 0, "location ids are 1 to 65,535") };
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: emits a comment. The compiler assumes a side effect, so the comment stays in place.
    unsafe {
        core::arch::asm!(warptrace_abi::marker!(loc), const ID, options(nomem, nostack, preserves_flags));
    }
    #[cfg(not(target_arch = "nvptx64"))]
    host::point(ID);
}

/// Traces location `ID` at the start or the end of a wait. Like [`point`], but records only if waits are
/// recorded. Otherwise the comment `// warptrace.wait 3` is not replaced.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn wait<const ID: u16>() {
    const { assert!(ID != 0, "location ids are 1 to 65,535") };
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: emits a comment; see `point`.
    unsafe {
        core::arch::asm!(warptrace_abi::marker!(wait), const ID, options(nomem, nostack, preserves_flags));
    }
    #[cfg(not(target_arch = "nvptx64"))]
    host::wait(ID);
}

/// A value that a trace can hold: a number of up to 64 bits, `bool` (0 or 1) or `char`. Types smaller than 32
/// bits are widened to 32 bits, as by `as`.
#[diagnostic::on_unimplemented(
    message = "a trace cannot hold a `{Self}`",
    label = "no number",
    note = "`trace!(\"name\", value)` takes integers of up to 64 bits, `f32`, `f64`, `bool` and `char`: trace the fields of a structure one by one, and dereference references"
)]
pub trait Value: Copy {
    /// Emits the comment that names the value `ID` in the module's table.
    #[cfg(target_arch = "nvptx64")]
    #[doc(hidden)]
    fn mark<const ID: u16>(self);

    /// Returns the type in the trace, and the bits. 32-bit types use the lower half.
    #[cfg(not(target_arch = "nvptx64"))]
    #[doc(hidden)]
    fn bits(self) -> (warptrace_abi::data::ValueType, u64);
}

macro_rules! value {
    ($($of:ident: $variant:ident $class:ident, $bits:expr;)*) => {$(
        impl Value for $of {
            #[cfg(target_arch = "nvptx64")]
            #[inline(always)]
            fn mark<const ID: u16>(self) {
                // SAFETY: emits a comment that reads a register; see `point`.
                unsafe {
                    core::arch::asm!(
                        warptrace_abi::marker!(value $of),
                        const ID,
                        in($class) self,
                        options(nomem, nostack, preserves_flags),
                    );
                }
            }

            #[cfg(not(target_arch = "nvptx64"))]
            fn bits(self) -> (warptrace_abi::data::ValueType, u64) {
                let bits: fn($of) -> u64 = $bits;
                (warptrace_abi::data::ValueType::$variant, bits(self))
            }
        }
    )*};
}

value! {
    u32: U32 reg32, u64::from;
    i32: I32 reg32, |value| u64::from(value.cast_unsigned());
    u64: U64 reg64, |value| value;
    i64: I64 reg64, i64::cast_unsigned;
    f32: F32 reg32, |value| value.to_bits().into();
    f64: F64 reg64, f64::to_bits;
}

macro_rules! widened {
    ($($of:ty as $wide:ty;)*) => {$(
        impl Value for $of {
            #[cfg(target_arch = "nvptx64")]
            #[inline(always)]
            fn mark<const ID: u16>(self) {
                (self as $wide).mark::<ID>();
            }

            #[cfg(not(target_arch = "nvptx64"))]
            fn bits(self) -> (warptrace_abi::data::ValueType, u64) {
                (self as $wide).bits()
            }
        }
    )*};
}

widened! {
    bool as u32;
    char as u32;
    u8 as u32;
    i8 as i32;
    u16 as u32;
    i16 as i32;
    usize as u64;
    isize as i64;
}

/// Records the value `ID` of the module's table for the active lanes. Never changes a kernel's results.
///
/// # On the GPU
/// The compiled kernel contains a comment with the value's register, `// warptrace.value 3 f32 %f7`, and the
/// instructions that compute the value. The assembler removes them if nothing else uses the value. To record
/// values, `warptrace-ptx` replaces the comment with recording instructions.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn value<const ID: u16>(value: impl Value) {
    const { assert!(ID != 0, "ids of values are 1 to 65,535") };
    #[cfg(target_arch = "nvptx64")]
    value.mark::<ID>();
    #[cfg(not(target_arch = "nvptx64"))]
    host::value(ID, value);
}

/// Guard for a loop body. On the simulator, lanes wait at its end for lanes that are still inside, because
/// hardware reconverges them before the next iteration.
#[derive(Debug)]
#[must_use = "its end is the end of the loop's body"]
pub struct Body {
    #[cfg(not(target_arch = "nvptx64"))]
    end: crate::simt::host::Site,
}

/// Enters a loop body. Its end is the position of this call, as reported by the compiler.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn body() -> Body {
    Body {
        #[cfg(not(target_arch = "nvptx64"))]
        end: core::panic::Location::caller(),
    }
}

#[cfg(not(target_arch = "nvptx64"))]
impl Drop for Body {
    fn drop(&mut self) {
        // The simulator unwinds the lanes of a failed launch.
        if in_launch() && !std::thread::panicking() {
            crate::simt::join(self.end);
        }
    }
}

/// Guard for a call. On the simulator, lanes inside a function run before lanes that returned to the caller.
#[derive(Debug)]
#[must_use = "its end is the end of the call"]
pub struct Call {
    #[cfg(not(target_arch = "nvptx64"))]
    _private: (),
}

/// Notifies the simulator of a call at this position. Returns `callee`.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn calls<F>(callee: F) -> F {
    #[cfg(not(target_arch = "nvptx64"))]
    if in_launch() {
        let site = core::panic::Location::caller();
        crate::simt::host::with_lane(|lane| lane.calls(site));
    }
    callee
}

/// Enters a function.
#[inline(always)]
pub fn call() -> Call {
    #[cfg(not(target_arch = "nvptx64"))]
    if in_launch() {
        crate::simt::host::with_lane(|lane| lane.call(true));
    }
    Call {
        #[cfg(not(target_arch = "nvptx64"))]
        _private: (),
    }
}

#[cfg(not(target_arch = "nvptx64"))]
impl Drop for Call {
    fn drop(&mut self) {
        if in_launch() && !std::thread::panicking() {
            crate::simt::host::with_lane(|lane| lane.call(false));
        }
    }
}

/// Guard for the code between a loop and the end of the enclosing block, if lanes may return from inside the
/// loop. On the simulator, lanes in this code run before lanes that are still in the loop. Hardware
/// reconverges them only at a point that returning lanes reach too.
#[derive(Debug)]
#[must_use = "its end is where lanes wait"]
pub struct Ahead {
    _call: Call,
}

/// Enters the code after a loop, ahead of lanes that are still inside it.
#[inline(always)]
pub fn ahead() -> Ahead {
    Ahead { _call: call() }
}

/// A type that supports `?`.
pub trait Fallible {
    /// Returns true if `?` returns early.
    fn fails(&self) -> bool;
}

impl<T> Fallible for Option<T> {
    #[inline(always)]
    fn fails(&self) -> bool {
        self.is_none()
    }
}

impl<T, E> Fallible for Result<T, E> {
    #[inline(always)]
    fn fails(&self) -> bool {
        self.is_err()
    }
}

impl<T, E> Fallible for Poll<Result<T, E>> {
    #[inline(always)]
    fn fails(&self) -> bool {
        matches!(self, Self::Ready(Err(_)))
    }
}

impl<T, E> Fallible for Poll<Option<Result<T, E>>> {
    #[inline(always)]
    fn fails(&self) -> bool {
        matches!(self, Self::Ready(Some(Err(_))))
    }
}

impl<B, C> Fallible for ControlFlow<B, C> {
    #[inline(always)]
    fn fails(&self) -> bool {
        self.is_break()
    }
}

#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod host {
    use crate::simt::host::{in_launch, with_lane};
    use crate::simt::{is_leader, located};

    #[track_caller]
    pub(super) fn point(location: u16) {
        if in_launch() {
            record(location, located(location, core::panic::Location::caller()), 1);
        }
    }

    #[track_caller]
    pub(super) fn wait(location: u16) {
        if in_launch() && with_lane(|lane| lane.recording().waits) {
            point(location);
        }
    }

    #[track_caller]
    pub(super) fn value(id: u16, value: impl super::Value) {
        if in_launch() && with_lane(|lane| lane.recording().data.values) {
            let mask = located(id, core::panic::Location::caller());
            let (of, bits) = value.bits();
            with_lane(|lane| lane.value(id, of, mask, bits));
        }
    }

    /// Records `count` events of the lanes in `mask`. All of them call it together.
    #[track_caller]
    pub(crate) fn record(location: u16, mask: u32, count: u32) {
        // The leader runs first, and no other lane runs before it returns.
        if count != 0 && is_leader(mask) {
            with_lane(|lane| lane.record(location, mask, count));
        }
    }
}
