//! The attribute macro [`macro@kernels`]: expands kernels, inserts trace points, makes the location table.
//!
//! ```text
//! module ── functions.rs: traced functions ── insert.rs: a call at each decision ── emit.rs: entries, table
//! decisions.rs: defines decisions             table.rs, text.rs: ids, positions, names
//! ```
//!
//! Inserted calls have spans of user tokens, so the simulator and compiler messages refer to the user's file.

mod arguments;
mod decisions;
mod device_code;
mod emit;
mod errors;
mod functions;
mod insert;
mod loops;
mod mark;
mod module;
mod strip;
mod syntax;
mod table;
mod text;
mod twins;
mod waits;

use proc_macro::TokenStream;

/// Turns the functions with `#[kernel]` in an inline module into kernels, and traces every decision of all
/// functions in the module.
///
/// ```
/// # use warptrace_device as device;
/// #[warptrace_macros::kernels(device = warptrace_device)]
/// pub mod halving {
///     use warptrace_device::{Global, simt};
///
///     /// Halves the even elements.
///     #[kernel]
///     pub fn halve(data: Global<u32>) {
///         let i = u64::from(simt::global_thread_x());
///         if i >= data.len() {
///             return;
///         }
///         // SAFETY: `i` is below the length, and each thread has its own element.
///         unsafe {
///             if data.get(i) % 2 == 0 {
///                 data.set(i, data.get(i) / 2);
///             }
///         }
///     }
/// }
///
/// let names: Vec<&str> = halving::LOCATIONS.iter().map(|location| location.name).collect();
/// assert_eq!(names, [
///     "halve",
///     "halve: if i >= data.len()",
///     "halve: else of if i >= data.len()",
///     "halve: if data.get(i) % 2 == 0",
///     "halve: else of if data.get(i) % 2 == 0",
/// ]);
/// ```
///
/// # Kernels
/// A function with `#[kernel]` becomes a GPU entry of the same name. On the host, it becomes a function with
/// the same arguments that returns a call to launch. Kernels have no return value or type parameters.
///
/// | argument | in the kernel | on the host |
/// | --- | --- | --- |
/// | a number | the number | the number |
/// | `&[T]` | a slice that nothing writes | a device array (`&impl DeviceArray<T>`) |
/// | `DisjointSlice<T>` | each thread writes its own element | an array; no other argument may overlap it |
/// | `AtomicSlice<T>` | threads use its elements atomically | an array; no other argument may overlap it |
/// | `Global<T>` | address and length; reading and writing are `unsafe` | the same |
///
/// Without `Global<T>`, the call is a `SafeCall`, which safe code can launch. Otherwise it is a `KernelCall`.
///
/// # What is traced
/// | construct | locations |
/// | --- | --- |
/// | a function | its entry |
/// | `if`, `if let`, and chains of them | each branch, including an `else` that is not written |
/// | `let ... else` | the pattern matched, or did not match |
/// | `match` with at least two arms | each arm |
/// | `while`, `for`, `loop` | each iteration, and the end |
/// | `return` | the `return`, unless it comes first in a branch, whose event implies it |
/// | `?` | it had a value, or returned |
/// | `trace!("name")`, `trace!("name", if condition)` | the point (if the condition holds) |
/// | `sync_threads()`, `spin_hint()`, with times of runs | start and end of the wait |
///
/// - All functions of the module are traced, including methods, except: `const fn` and `async fn`, functions
///   with `#[untraced]`, functions of traits, and functions in functions or in nested modules. A function
///   without decisions and `trace!` that is not a kernel gets no entry point: its caller's events show it.
/// - Trace points at waits record only with times of runs. The macro finds these calls by the function's
///   name, with any path, also in functions without decisions, but not in modules with `only_marked`.
/// - `#[untraced]` before an expression, such as a loop, excludes all of it.
/// - `&&` and `||` are not decisions. Closure bodies and macro arguments are not searched; `trace!` in a
///   closure is an error.
/// - A loop is *counted* if it contains no other decision and no call of a traced function: see `LoopTrace`.
///   A `loop` is also counted if its only `break` is in an `if` without `else` and without other decisions.
///
/// # The table
/// `LOCATIONS` lists all locations. `MODULE` describes the module for a session. Ids count from 1 in source
/// order, module by module, so a change does not affect the ids of code before it. Modules in the same trace
/// need disjoint ids: `#[kernels(first_id = 1001)]` numbers a module from 1001. Each location names its
/// enclosing location (a function's entry, a branch, a loop body) and the position where diverged lanes
/// reconverge. `MODULE.waits` lists the locations of waits, with ids after all others.
///
/// # Only marks
/// With `#[kernels(only_marked)]`, the macro traces only `trace!` and loops that `trace_loop!` counts:
///
/// ```
/// # use warptrace_device as device;
/// #[warptrace_macros::kernels(device = warptrace_device, only_marked)]
/// pub mod halving {
///     use warptrace_device::{Global, simt};
///
///     /// Counts how often each element can be halved.
///     #[kernel]
///     pub fn halvings(data: Global<u32>) {
///         let i = u64::from(simt::global_thread_x());
///         if i < data.len() {
///             trace!("IN_RANGE");
///             // SAFETY: `i` is below the length, and each thread has its own element.
///             let (mut rest, mut count) = (unsafe { data.get(i) }, 0);
///             let mut steps = trace_loop!("STEP");
///             while rest > 1 {
///                 steps.tick();
///                 rest /= 2;
///                 count += 1;
///             }
///             drop(steps);
///             // SAFETY: `i` is below the length, and each thread has its own element.
///             unsafe { data.set(i, count) };
///         }
///     }
/// }
///
/// let names: Vec<&str> = halving::LOCATIONS.iter().map(|location| location.name).collect();
/// assert_eq!(names, ["IN_RANGE", "STEP"]);
/// assert_eq!(halving::at::STEP, 2);
/// ```
///
/// `trace_loop!` returns a `LoopTrace`. `trace!("name" = 40)` sets an id, from which the next ids continue,
/// like discriminants of an `enum`. The nested module `at` has the ids of marks named by unique identifiers.
///
/// `callees = { super::sums::{before, tally} }` names functions of another module that record events, so that
/// the simulator is notified of their calls.
///
/// `automatic = 1` also generates a nested module `automatic`, with its `LOCATIONS` and `MODULE`, for
/// comparison: copies of the kernels and of all functions with decisions, without the marks, traced at every
/// decision, with ids from 1. The GPU entry of the copy of a kernel `step` is `step_automatic`, and its call
/// is part of the kernel's call (`KernelCall::automatic`). All launches are `unsafe`. The copies share types
/// and functions without decisions with the module. Methods cannot have decisions: they are not copied.
///
/// # Errors
/// If an id is above 65,535 or used twice, if two `trace!` in a function have the same name, if the module is
/// not inline, or if a kernel is invalid.
#[proc_macro_attribute]
pub fn kernels(arguments: TokenStream, module: TokenStream) -> TokenStream {
    module::expand(arguments.into(), module.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Always reports an error: in its module, [`macro@kernels`] handles `#[kernel]` itself.
#[proc_macro_attribute]
pub fn kernel(_: TokenStream, item: TokenStream) -> TokenStream {
    let missing = syn::Error::new(
        proc_macro2::Span::call_site(),
        "`#[kernel]` makes a kernel in a module with `#[warptrace::kernels]`: write that before the module, \
         `#[warptrace::kernels] mod name { #[kernel] fn ... }`, and no `use` of `kernel`",
    );
    let mut tokens = missing.into_compile_error();
    tokens.extend(proc_macro2::TokenStream::from(item));
    tokens.into()
}
