//! Hooks for kernel launches. A traced kernel is launched as its copy, with the logs as an extra argument.

use std::cell::OnceCell;
use std::ffi::c_uint;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use cudarc::driver::sys::CUlaunchConfig;
use warptrace_abi::log::LaunchLogs;
use warptrace_abi::shared::dynamic_shared;
use warptrace_host::{Blocks, LaunchShape};

use super::call::{AttributesLaunch, CooperativeLaunch, DriverCall, Launch, PlainLaunch};
use super::{Handle, List};
use crate::driver::{self, Answer, PER_THREAD_STREAM, Relaxed, SUCCESS};
use crate::exchange::{Kernel, NOT_ASKED};
use crate::inside::guarded;
use crate::state::{FittingCopy, Function, State, lock, state};
use crate::trace::{self, Item, Request};

/// Bounds on registers per thread: 32 allow the maximum number of warps; 255 is the hardware's limit.
const MIN_REGISTERS: u32 = 32;
const MAX_REGISTERS: u32 = 255;
/// Bytes of dynamic shared memory above which the copy's limit is raised first.
const ASKED_FOR_ABOVE: u64 = 16 << 10;

struct NotTraced {
    /// `None` if the launched handle is unknown.
    function: Option<Arc<Function>>,
    /// `None` if the function is known to stay untraced in all launches.
    reason: Option<String>,
}

/// Records a launch. If the launch cannot be recorded, makes the program's own launch.
///
/// # Safety
/// `launch` is the program's own launch.
unsafe fn launched(launch: Launch) -> Answer {
    // The driver's result, if recording made the launch; and whether the launch counts in the summary.
    let (mut issued, mut is_counted) = (None, false);
    let outcome = guarded(|| {
        let state = state()?;
        if driver::is_capturing(launch.true_stream) {
            // The launch becomes a graph node. It is recorded when the graph is launched.
            return None;
        }
        is_counted = true;
        let is_asked = state.is_within() && !state.is_paused.load(Ordering::Relaxed);
        let function = lock(&state.registry).function(launch.function as usize).cloned();
        let not_traced = match &function {
            Some(function) if function.is_untraced() => Some(None),
            _ if !is_asked => Some(Some(NOT_ASKED.to_owned())),
            None => Some(Some("the program found it by a way that is not watched".to_owned())),
            Some(function) => {
                let _relaxed = Relaxed::enter();
                // SAFETY: guaranteed by the caller.
                unsafe { recorded(state, &launch, function, &mut issued) }
            }
        };
        Some((state, is_asked, not_traced.map(|reason| NotTraced { function, reason })))
    });
    let is_own = issued.is_none();
    // SAFETY: guaranteed by the caller.
    let answer = issued.unwrap_or_else(|| unsafe { launch.own() });
    if answer == SUCCESS && is_counted {
        guarded(|| count(&launch, is_own, outcome.flatten()));
    }
    answer
}

/// Counts a successful launch. Adds an untraced launch to the trace, unless the trace has it already.
fn count(
    launch: &Launch,
    is_own: bool,
    outcome: Option<(&'static State, bool, Option<NotTraced>)>,
) -> Option<()> {
    let counts = &state()?.counts;
    counts.seen.fetch_add(1, Ordering::Relaxed);
    let (state, is_asked, not_traced) = outcome?;
    let Some(NotTraced { function, reason }) = not_traced else {
        counts.traced.fetch_add(1, Ordering::Relaxed);
        return None;
    };
    let unknown: Arc<str>;
    let (name, known) = match &function {
        Some(function) => (function.readable(), Some(&function.noted)),
        None => {
            unknown = "a kernel".into();
            (&unknown, None)
        }
    };
    match (reason, &function) {
        (_, _) if !is_asked => drop(state.untraced(name, NOT_ASKED)),
        (None, Some(function)) => function.count_untraced(state),
        (reason, _) => drop(state.untraced(name, reason.as_deref().unwrap_or(NOT_ASKED))),
    }
    let shape = LaunchShape {
        dynamic_shared: launch.shared,
        ..LaunchShape::new(launch.grid, launch.block, Blocks::Communicating)
    };
    if is_asked && is_own { trace::note(state, name, shape, known) } else { None }
}

/// Launches the traced copy of a function. Returns `None` on success, `Some(None)` if no launch of it can be
/// traced, and the reason otherwise. Sets `issued` to the result of a successful launch, traced or not.
///
/// # Safety
/// `launch` is the program's own launch of `function`.
unsafe fn recorded(
    state: &'static State,
    launch: &Launch,
    function: &Function,
    issued: &mut Option<Answer>,
) -> Option<Option<String>> {
    let kernel = match function.kernel() {
        Ok(kernel) => kernel,
        Err(reason) => {
            function.stays_untraced(&reason);
            return Some(None);
        }
    };
    let mut is_traced = false;
    let mut record = || {
        function.check_launches(state.settings.spec.recording.window.first, 0)?;
        let mut traced = function.traced(kernel).ok_or("its traced copy is not in the module")?;
        let context = driver::current_context().ok_or("the thread has no context")?;
        let (mut kernel, mut code, fitting) = (kernel, function.traced_code()?, OnceCell::new());
        let (shape, shared) = match checked(function, launch, kernel, traced) {
            Err(Unfit::Blocks { registers, reason }) => {
                let copy = function.fitting(registers).map_err(|more| format!("{reason} ({more})"))?;
                let copy: &FittingCopy = fitting.get_or_init(|| copy);
                (kernel, code) = (&copy.kernel, &copy.code);
                traced = copy.handle().ok_or("its traced copy is not in the module")?;
                checked(function, launch, kernel, traced)
            }
            checked => checked,
        }?;
        if kernel.is_deep {
            driver::grow_stack();
        }
        if function.is_first() {
            remark(state, context, launch, (function.readable(), traced, shared));
        }
        let make = |logs: &[Option<LaunchLogs>]| {
            let logs = logs.first().copied().flatten();
            let answer = match logs {
                // SAFETY: `traced` is the copy of the launched function, in its own module.
                Some(logs) => unsafe { launch.traced(traced, kernel, &logs, shared) },
                // SAFETY: the program's own launch.
                None => unsafe { launch.own() },
            };
            *issued = Some(answer).filter(|answer| *answer == SUCCESS);
            is_traced = issued.is_some() && logs.is_some();
            answer
        };
        let items = vec![Item { code, kernel, shape }];
        let request = Request { context, stream: launch.true_stream, items, launch: make };
        trace::record(state, request)?;
        function.was_recorded();
        Ok(())
    };
    let recorded: Result<(), String> = record();
    (!is_traced).then(|| Some(recorded.err().unwrap_or_else(|| NOT_ASKED.to_owned())))
}

/// Adds remarks to the trace: if other numbers of blocks of copy and kernel fit on a multiprocessor, and if a
/// programmatic dependent launch waits for the kernel before it.
fn remark(state: &State, context: Handle, launch: &Launch, (name, traced, shared): (&str, Handle, u64)) {
    let threads = launch.block.iter().map(|threads| u64::from(*threads)).product();
    let own = driver::blocks_at_once(launch.function, threads, launch.shared.into());
    let blocks = driver::blocks_at_once(traced, threads, shared);
    let context = context as usize;
    let mut summary = lock(&state.summary);
    if let (Some(own), Some(blocks)) = (own, blocks)
        && own != blocks
    {
        let remark = format!(
            "{name}: {own} blocks of {threads} threads fit on a multiprocessor, {blocks} of its copy"
        );
        summary.remark(context, remark);
    }
    if launch.is_programmatic() {
        let note = format!(
            "{name}: it is launched to begin before the kernel ahead of it has ended (programmatic dependent launch); \
             traced, it waits"
        );
        summary.remark(context, note.clone());
        summary.note(note);
    }
}

pub(super) enum Unfit {
    /// No copy can be launched, for this reason.
    Never(String),
    /// Too few blocks fit on a multiprocessor. A copy with `registers` and no shared memory may fit.
    Blocks { registers: u32, reason: String },
}

impl From<&str> for Unfit {
    fn from(reason: &str) -> Self {
        Self::Never(reason.to_owned())
    }
}

impl From<Unfit> for String {
    fn from(unfit: Unfit) -> Self {
        let (Unfit::Never(reason) | Unfit::Blocks { reason, .. }) = unfit;
        reason
    }
}

/// Returns the launch's shape and the copy's dynamic shared memory in bytes, if the copy can be launched.
/// Repeats the function's last answer for an equal launch.
fn checked(
    function: &Function,
    launch: &Launch,
    kernel: &Kernel,
    traced: Handle,
) -> Result<(LaunchShape, u64), Unfit> {
    if launch.parameters.is_null() && launch.extra.is_null() && !kernel.parameters.is_empty() {
        return Err("it has no arguments".into());
    }
    let is_cooperative = launch.is_cooperative();
    let asked = (traced as usize, launch.grid, launch.block, launch.shared, is_cooperative);
    let mut checked = lock(&function.checked);
    if let Some((_, known)) = checked.filter(|(known, _)| *known == asked) {
        return Ok(known);
    }
    let Launch { function, grid, block, shared, .. } = *launch;
    let fits = shape_of(function, grid, block, shared, is_cooperative, kernel, traced)?;
    *checked = Some((asked, fits));
    Ok(fits)
}

/// Like [`checked`], but takes the launch's properties one by one. Graph nodes use it, too.
pub(super) fn shape_of(
    own: Handle,
    grid: [c_uint; 3],
    block: [c_uint; 3],
    shared: c_uint,
    is_cooperative: bool,
    kernel: &Kernel,
    traced: Handle,
) -> Result<(LaunchShape, u64), Unfit> {
    let shape =
        LaunchShape { dynamic_shared: shared, ..LaunchShape::new(grid, block, Blocks::Communicating) };
    let threads = shape.block_threads();
    if threads == 0 || threads > 1024 || shape.block_count() == 0 {
        return Err("the driver refuses its grid or block".into());
    }
    let own_shared = u64::from(shared);
    let shared = dynamic_shared(shared, shape.warps_per_block(), kernel.shared_bytes);
    let is_allowed = shared <= ASKED_FOR_ABOVE || driver::allow_shared(traced, shared);
    let Some(blocks) = (if is_allowed { driver::blocks_at_once(traced, threads, shared) } else { Some(0) })
    else {
        return Err("the driver does not say how many blocks of its traced copy fit".into());
    };
    let (all, multiprocessors) = (shape.block_count(), driver::multiprocessors());
    let at_once = |blocks: u64| u128::from(blocks * multiprocessors);
    let own_fit = || driver::blocks_at_once(own, threads, own_shared).is_some_and(|own| all <= at_once(own));
    let must_fit = all > at_once(blocks) && (is_cooperative || own_fit());
    if must_fit || blocks == 0 {
        // If the grid does not fit on the device at once, one block per multiprocessor is enough.
        let each = if must_fit { all.div_ceil(u128::from(multiprocessors.max(1))) } else { 1 };
        let registers = registers_of(each, shape.warps_per_block().into());
        let reason = match blocks {
            0 => format!(
                "its traced copy takes too many registers or too much shared memory for blocks of {threads} threads"
            ),
            _ => "all of its blocks fit on the device at once, and those of its traced copy do not: if they wait for each \
                  other, it would never end"
                .to_owned(),
        };
        return Err(Unfit::Blocks { registers, reason });
    }
    Ok((shape, shared))
}

/// Returns the registers per thread with which `blocks` blocks of `warps` warps fit on a multiprocessor.
/// Warps get registers in units of 256. The warps of a block count in groups of four.
fn registers_of(blocks: u128, warps: u128) -> u32 {
    let warps = blocks.saturating_mul(warps.next_multiple_of(4)).max(1);
    let of_warp = u128::from(driver::registers_per_multiprocessor()) / warps / 256 * 256;
    u32::try_from(of_warp / 32).unwrap_or(u32::MAX).clamp(MIN_REGISTERS, MAX_REGISTERS)
}

/// Returns the per-thread default stream for a null stream, and any other stream unchanged.
pub(super) fn per_thread(stream: Handle) -> Handle {
    if stream.is_null() { PER_THREAD_STREAM } else { stream }
}

macro_rules! shaped {
    ($($name:ident, $call:ident($real:ident), $stream:path, ($extra:expr $(, $argument:ident)?);)*) => {
        $(
            #[expect(clippy::too_many_arguments, reason = "the driver's")]
            pub(super) unsafe fn $name(
                real: $real,
                function: Handle,
                gx: c_uint,
                gy: c_uint,
                gz: c_uint,
                bx: c_uint,
                by: c_uint,
                bz: c_uint,
                shared: c_uint,
                stream: Handle,
                parameters: List,
                $($argument: List,)?
            ) -> Answer {
                let (grid, block, true_stream) = ([gx, gy, gz], [bx, by, bz], $stream(stream));
                let (call, extra) = (DriverCall::$call(real), $extra);
                // SAFETY: the program's own launch.
                unsafe {
                    launched(Launch { call, function, grid, block, shared, stream, true_stream, parameters, extra })
                }
            }
        )*
    };
}

shaped! {
    plain, Plain(PlainLaunch), std::convert::identity, (extra, extra);
    plain_per_thread, Plain(PlainLaunch), per_thread, (extra, extra);
    cooperative, Cooperative(CooperativeLaunch), std::convert::identity, (null_mut());
    cooperative_per_thread, Cooperative(CooperativeLaunch), per_thread, (null_mut());
}

/// # Safety
/// The arguments are the program's own call.
unsafe fn attributed(
    real: AttributesLaunch,
    config: *const CUlaunchConfig,
    function: Handle,
    parameters: List,
    extra: List,
    stream_of: impl FnOnce(Handle) -> Handle,
) -> Answer {
    if config.is_null() {
        // SAFETY: the program's own call; the driver returns an error for a null configuration.
        return unsafe { real(config, function, parameters, extra) };
    }
    // SAFETY: the program's configuration, which is not null.
    let CUlaunchConfig {
        gridDimX: gx,
        gridDimY: gy,
        gridDimZ: gz,
        blockDimX: bx,
        blockDimY: by,
        blockDimZ: bz,
        sharedMemBytes: shared,
        hStream: stream,
        ..
    } = unsafe { *config };
    let (grid, block, stream) = ([gx, gy, gz], [bx, by, bz], stream.cast());
    let (call, true_stream) = (DriverCall::Attributes(real, config), stream_of(stream));
    // SAFETY: guaranteed by the caller.
    unsafe {
        launched(Launch { call, function, grid, block, shared, stream, true_stream, parameters, extra })
    }
}

pub(super) unsafe fn with_attributes(
    real: AttributesLaunch,
    config: *const CUlaunchConfig,
    function: Handle,
    parameters: List,
    extra: List,
) -> Answer {
    // SAFETY: the program's own launch.
    unsafe { attributed(real, config, function, parameters, extra, std::convert::identity) }
}

pub(super) unsafe fn with_attributes_per_thread(
    real: AttributesLaunch,
    config: *const CUlaunchConfig,
    function: Handle,
    parameters: List,
    extra: List,
) -> Answer {
    // SAFETY: the program's own launch.
    unsafe { attributed(real, config, function, parameters, extra, per_thread) }
}
