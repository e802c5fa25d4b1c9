//! Panics inside lanes.
//!
//! A panic's location is known to the panic hook alone. The first launch of a process therefore wraps the
//! hook that is installed: a panic of a running lane is noted and kept quiet, because the launch reports it
//! as an error; every other panic goes to the hook that was there before. A program that replaces the hook
//! later loses nothing but the location.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::sync::Once;

use warptrace_device::simt::host::Site;

use crate::error::SourcePoint;

thread_local! {
    static IN_LANE: Cell<bool> = const { Cell::new(false) };
    static LOCATION: RefCell<Option<SourcePoint>> = const { RefCell::new(None) };
}

/// How a lane ended that did not return.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) message: String,
    pub(crate) location: Option<SourcePoint>,
    /// A panic; otherwise the device library called `Lane::fail`.
    pub(crate) panicked: bool,
}

/// Payload with which `Lane::fail` unwinds; it passes by the panic hook.
pub(crate) struct FailPayload {
    pub(crate) message: String,
    pub(crate) site: Site,
}

/// Wraps the panic hook once per process.
pub(crate) fn install_hook() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let previous = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if IN_LANE.get() {
                LOCATION.set(info.location().map(SourcePoint::from));
            } else {
                previous(info);
            }
        }));
    });
}

/// Says whether lanes, and not the scheduler, run on this thread from now on; returns what was true before.
pub(crate) fn set_in_lane(in_lane: bool) -> bool {
    IN_LANE.replace(in_lane)
}

/// What a lane's panic payload says.
pub(crate) fn describe(payload: Box<dyn Any + Send>) -> Failure {
    let location = LOCATION.take();
    let payload = match payload.downcast::<FailPayload>() {
        Ok(fail) => {
            return Failure { message: fail.message, location: Some(fail.site.into()), panicked: false };
        }
        Err(payload) => payload,
    };
    let message = match payload.downcast::<String>() {
        Ok(message) => *message,
        Err(payload) => payload
            .downcast::<&'static str>()
            .map_or_else(|_| "a panic whose payload is no text".to_owned(), |message| (*message).to_owned()),
    };
    Failure { message, location, panicked: true }
}
