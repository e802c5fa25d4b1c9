//! What `#[warptrace::kernels]` puts into functions.
//!
//! Kernels are not written against this module; its names may change with the macro. On the GPU everything
//! here is a comment or nothing. So it is where the host calls such a function by itself, as a reference
//! does.

use core::ops::ControlFlow;
use core::task::Poll;

pub use crate::arrays::slice;
#[cfg(not(target_arch = "nvptx64"))]
use crate::simt::host::in_launch;

/// Traces that lanes come to location `ID`: those that come here together make one event, `(ID, lanes)`.
/// Never changes what the kernel computes.
///
/// # On the GPU
/// The compiled kernel holds a comment here, `// warptrace.loc 3`, and no instruction. When a trace is
/// wanted, `warptrace-ptx` puts the instructions that record in its place, after the optimiser has done its
/// work. So the traced kernel is the one that runs untraced. The optimiser may copy the comment with the code
/// around it (a loop that is unrolled has it several times); it neither drops it, nor moves it over a branch,
/// nor merges two of them.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn point<const ID: u16>() {
    const { assert!(ID != 0, "location ids are 1 to 65,535") };
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: a comment. With a side effect, as far as the compiler knows, so that it stays where it is.
    unsafe {
        core::arch::asm!(warptrace_abi::marker!(loc), const ID, options(nomem, nostack, preserves_flags));
    }
    #[cfg(not(target_arch = "nvptx64"))]
    host::point(ID);
}

/// Traces that lanes come to location `ID`, where they begin to wait, or have waited: as [`point`], but only
/// where waits are recorded. Else the comment, `// warptrace.wait 3`, stays one.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn wait<const ID: u16>() {
    const { assert!(ID != 0, "location ids are 1 to 65,535") };
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: a comment; see `point`.
    unsafe {
        core::arch::asm!(warptrace_abi::marker!(wait), const ID, options(nomem, nostack, preserves_flags));
    }
    #[cfg(not(target_arch = "nvptx64"))]
    host::wait(ID);
}

/// A value that a trace can hold: numbers of up to 64 bits, `bool` and `char`.
///
/// What is smaller than 32 bits is widened to 32, as `as` does; `bool` is 0 or 1.
#[diagnostic::on_unimplemented(
    message = "a trace cannot hold a `{Self}`",
    label = "no number",
    note = "`trace!(\"name\", value)` takes integers of up to 64 bits, `f32`, `f64`, `bool` and `char`: trace the fields of a structure one by one, and dereference references"
)]
pub trait Value: Copy {
    /// Leaves the comment that names the value, `ID` in the module's table.
    #[cfg(target_arch = "nvptx64")]
    #[doc(hidden)]
    fn mark<const ID: u16>(self);

    /// Returns the type that the trace has, and the bits, in the lower half if the type has 32.
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
                // SAFETY: a comment that reads a register; see `point`.
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

/// Names a value that the lanes which come here hold, `ID` in the module's table. Never changes what the
/// kernel computes.
///
/// # On the GPU
/// The compiled kernel holds a comment here that names the register with the value, `// warptrace.value 3 f32
/// %f7`, and no instruction but those that compute the value, which the assembler drops if nothing else uses
/// it. Where values are recorded, `warptrace-ptx` puts the instructions that record in its place.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn value<const ID: u16>(value: impl Value) {
    const { assert!(ID != 0, "ids of values are 1 to 65,535") };
    #[cfg(target_arch = "nvptx64")]
    value.mark::<ID>();
    #[cfg(not(target_arch = "nvptx64"))]
    host::value(ID, value);
}

/// Stands for the body of a loop. On the simulator, lanes wait at its end for others that are still inside,
/// as hardware has them meet before the next iteration.
#[derive(Debug)]
#[must_use = "its end is the end of the loop's body"]
pub struct Body {
    #[cfg(not(target_arch = "nvptx64"))]
    end: crate::simt::host::Site,
}

/// Enters the body of a loop, which ends where the call claims to stand.
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
        // The simulator unwinds the lanes of a launch that failed.
        if in_launch() && !std::thread::panicking() {
            crate::simt::join(self.end);
        }
    }
}

/// Stands for a call. On the simulator, lanes in a function come before lanes that are back in its caller.
#[derive(Debug)]
#[must_use = "its end is the end of the call"]
pub struct Call {
    #[cfg(not(target_arch = "nvptx64"))]
    _private: (),
}

/// Tells that a function is called here; returns it.
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

/// Stands for the way from a loop out of which some lanes may return, to the end of the block that the loop
/// stands in. On the simulator, lanes on it come before those that are still in the loop: hardware has them
/// meet where returned lanes come, too.
#[derive(Debug)]
#[must_use = "its end is where lanes wait"]
pub struct Ahead {
    _call: Call,
}

/// Goes ahead of lanes that are still in the loop before.
#[inline(always)]
pub fn ahead() -> Ahead {
    Ahead { _call: call() }
}

/// A value that `?` takes.
pub trait Fallible {
    /// Whether `?` returns early.
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

/// Trace points on the simulator.
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

    /// Records `count` events of the lanes of `mask`, which are all here and call this.
    #[track_caller]
    pub(crate) fn record(location: u16, mask: u32, count: u32) {
        // The leader comes first, and no other lane runs before it has returned.
        if count != 0 && is_leader(mask) {
            with_lane(|lane| lane.record(location, mask, count));
        }
    }
}
