//! The attribute behind [`macro@kernels`]: kernels, their trace points and the table of these.
//!
//! ```text
//! module ── functions.rs: which functions are traced ── insert.rs: a call at each decision ── emit.rs: entries, table
//! decisions.rs: what a decision is         table.rs, text.rs: ids, positions, names
//! ```
//!
//! Calls that are put into a function have the span of the user's own token, so that the simulator and the
//! compiler's messages see the position in the user's file.

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

/// Makes kernels of the functions of an inline module that have `#[kernel]`, and traces every decision of all
/// its functions.
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
/// A function with `#[kernel]` becomes an entry of its own name on the GPU. On the host it is a function of
/// the same arguments that returns a call, ready to be launched. It returns nothing and has no type
/// parameters.
///
/// | argument | in the kernel | on the host |
/// | --- | --- | --- |
/// | a number | the number | the number |
/// | `&[T]` | a slice that nothing writes | an array of the device (`&impl DeviceArray<T>`) |
/// | `DisjointSlice<T>` | each thread writes its own element | the same; no other argument may overlap it |
/// | `AtomicSlice<T>` | all threads use its elements, by atomics | the same; no other argument may overlap it |
/// | `Global<T>` | address and length; reading and writing are `unsafe` | the same |
///
/// Without `Global<T>` the call is a `SafeCall`, which can be launched by safe code; else a `KernelCall`.
///
/// # What is traced
/// | construct | locations |
/// | --- | --- |
/// | a function | its entry |
/// | `if`, `if let`, and chains of them | each branch; `else` too where it is not written |
/// | `let ... else` | the pattern matched, or did not |
/// | `match` of two arms or more | each arm |
/// | `while`, `for`, `loop` | each iteration, and the end |
/// | `return` | it was reached; not where it comes first in a branch, whose own event says so |
/// | `?` | it had a value, or returned |
/// | `trace!("name")`, `trace!("name", if condition)` | it was reached (and the condition holds) |
/// | `sync_threads()`, `spin_hint()`, with times of runs | the wait begins, and is over |
///
/// - All functions of the module are traced, methods included, but for: `const fn`, functions with
///   `#[untraced]`, functions of traits, functions in functions and in modules of the module. A function
///   without any decision (and without `trace!`) is not traced: its caller's events tell that it ran.
/// - Points at waits record only with times of runs. They are found by the functions' names, whatever the
///   path before them, also in functions without a decision; not in modules with `only_marked`.
/// - `#[untraced]` before an expression, such as a loop, leaves all of it out.
/// - `&&` and `||` are no decisions of their own. Bodies of closures and arguments of macros are not looked
///   into; `trace!` is an error there.
/// - A loop without another decision in it, and without a call of a traced function, is *counted*: see
///   `LoopTrace`. So is a `loop` whose one `break` stands in an `if` that does nothing else.
///
/// # The table
/// `LOCATIONS` has all locations, `MODULE` the module as a session takes it. Ids count from 1 in the order of
/// the source, module by module, so unchanged code before a change keeps them. Modules that go into one trace
/// have ids of their own: `#[kernels(first_id = 1001)]` numbers a module from there. A location says in which
/// one it lies (a function's entry, a branch, a loop's body), and where lanes that went another way meet
/// again. `MODULE.waits` has the locations of waits, whose ids follow the last one of the others.
///
/// # Marks alone
/// With `#[kernels(only_marked)]`, `trace!` and loops that are counted by `trace_loop!` are all that is
/// traced:
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
///             // SAFETY: as above.
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
/// `trace_loop!` returns a `LoopTrace`. `trace!("name" = 40)` says an id, from which those after it count on,
/// as discriminants of an `enum` do. The module `at`, made inside of this one, has the ids of marks whose
/// names are identifiers.
///
/// Functions of another module that leave events are named where they are called,
/// `callees = { super::sums::{before, tally} }`: the simulator is told of their calls.
///
/// With `automatic = 1`, too, the kernels and all functions that have a decision stand once more in the
/// module `automatic`, made inside of this one: without the marks, and traced at every decision, with ids
/// from 1; so the two can be compared. There are `LOCATIONS` and `MODULE` too. The entry of a kernel `step`
/// is `step_automatic` on the GPU, and its call comes with that of the kernel (`KernelCall::automatic`). All
/// launches are `unsafe`. Types and functions without a decision are those of the module itself. Methods
/// cannot be copied, so they cannot have decisions.
///
/// # Errors
/// Ids above 65,535, or given twice; two `trace!` of one name in a function; a module that is not written
/// inline; a kernel that cannot be one.
#[proc_macro_attribute]
pub fn kernels(arguments: TokenStream, module: TokenStream) -> TokenStream {
    module::expand(arguments.into(), module.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Says what is missing where `#[kernel]` stands in a module without [`macro@kernels`], which knows the word
/// by itself.
///
/// # Errors
/// Always.
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
