//! Ways to splice kernels.

use std::fmt;
use std::num::NonZero;

use warptrace_format::Counting;
use warptrace_format::chosen::After;
use warptrace_ptx::splice::{LogKind, Options, Placement, Recording};

#[derive(Clone, Copy)]
pub(crate) struct Way {
    policy: &'static str,
    recording: Recording,
}

/// Returns all ways, the default first.
pub(crate) fn ways() -> Vec<Way> {
    let plain = Recording::DEFAULT;
    let policies = [
        ("stop", plain),
        ("ring", Recording { logs: LogKind::Ring, ..plain }),
        ("stream", Recording { logs: LogKind::Streamed, ..plain }),
        ("stop, all loops counted, dual", Recording { counting: Counting::All, dual: true, ..plain }),
        ("stop, chosen warps", Recording { chooses: true, ..plain }),
        (
            "stop, from a visit on",
            Recording {
                after: Some(After { location: 1, count: NonZero::<u32>::MIN.saturating_add(1) }),
                ..plain
            },
        ),
    ];
    let placements = [None, Some(Placement::Registers), Some(Placement::Shared), Some(Placement::Local)];
    let with = |placement| {
        policies.map(|(policy, recording)| Way { policy, recording: Recording { placement, ..recording } })
    };
    placements.into_iter().flat_map(with).collect()
}

impl Way {
    pub(crate) fn options(self, architecture: u32) -> Options<'static> {
        Options { recording: Some(self.recording), architecture, ..Options::default() }
    }
}

impl fmt::Display for Way {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}, {}", self.policy, self.recording.placement.map_or("auto", Placement::name))
    }
}
