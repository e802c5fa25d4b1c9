//! Panics inside lanes.
//!
//! Only the panic hook receives a panic's location, so the first launch of a process wraps the current hook.
//! The wrapper stores the location of a lane's panic and prints nothing: the launch reports the panic as an
//! error. Other panics go to the previous hook. With a hook installed later, only the location is lost.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::sync::Once;

use warptrace_device::simt::host::Site;

use crate::error::SourcePoint;

thread_local! {
    static IN_LANE: Cell<bool> = const { Cell::new(false) };
    static LOCATION: RefCell<Option<SourcePoint>> = const { RefCell::new(None) };
}

#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) message: String,
    pub(crate) location: Option<SourcePoint>,
    /// True for a panic, false if the device library called `Lane::fail`.
    pub(crate) panicked: bool,
}

/// Payload with which `Lane::fail` unwinds, without invoking the panic hook.
pub(crate) struct FailPayload {
    pub(crate) message: String,
    pub(crate) site: Site,
}

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

/// Sets whether this thread runs lanes or the scheduler; returns the previous value.
pub(crate) fn set_in_lane(in_lane: bool) -> bool {
    IN_LANE.replace(in_lane)
}

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
