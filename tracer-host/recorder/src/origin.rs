//! Host, process, device and job rank of a recording.
//!
//! Ranks are read when a recording begins, from the environment variables of launchers and no others.

use std::ffi::OsString;

use warptrace_format::file::{Began, Origin};
use warptrace_format::shown;

use crate::{Device, DeviceFacts, HostClock};

/// A launcher, and the variables that tell a process its rank.
struct Launcher {
    name: &'static str,
    rank: &'static str,
    ranks: &'static str,
    local_rank: Option<&'static str>,
    job: Option<&'static str>,
}

/// The launchers, innermost first: later ones may start earlier ones.
const LAUNCHERS: [Launcher; 4] = [
    Launcher {
        name: "torchrun",
        rank: "RANK",
        ranks: "WORLD_SIZE",
        local_rank: Some("LOCAL_RANK"),
        job: Some("TORCHELASTIC_RUN_ID"),
    },
    Launcher {
        name: "Open MPI",
        rank: "OMPI_COMM_WORLD_RANK",
        ranks: "OMPI_COMM_WORLD_SIZE",
        local_rank: Some("OMPI_COMM_WORLD_LOCAL_RANK"),
        job: None,
    },
    Launcher { name: "PMI", rank: "PMI_RANK", ranks: "PMI_SIZE", local_rank: None, job: None },
    Launcher {
        name: "Slurm",
        rank: "SLURM_PROCID",
        ranks: "SLURM_NTASKS",
        local_rank: Some("SLURM_LOCALID"),
        job: Some("SLURM_JOB_ID"),
    },
];

/// torchrun's ID for a job without a name.
const NO_JOB: &str = "none";

impl Launcher {
    /// Reads rank, ranks and local rank; `None` without a valid rank. Adds a note for each invalid value.
    fn read(
        &self,
        variable: &impl Fn(&str) -> Option<OsString>,
        notes: &mut Vec<String>,
    ) -> Option<(u32, Option<u32>, Option<u32>)> {
        let mut number = |name: &str| -> Option<u32> {
            let held = variable(name)?;
            let held = held.to_string_lossy();
            let number = held.trim().parse().ok();
            if number.is_none() {
                notes.push(format!("{name} is `{}`, which is no number: it was ignored", shown(&held)));
            }
            number
        };
        let rank = number(self.rank)?;
        let ranks = number(self.ranks);
        let local_rank = self.local_rank.and_then(number);
        if let Some(ranks) = ranks.filter(|ranks| rank >= *ranks) {
            let Self { name, rank: variable, ranks: of, .. } = self;
            notes.push(format!(
                "{variable} is {rank}, but {of} is {ranks}: what {name} says of ranks was ignored"
            ));
            return None;
        }
        Some((rank, ranks, local_rank))
    }
}

/// Returns job and ranks from an environment. The innermost launcher counts; notes name others that disagree.
pub fn ranks_of(variable: impl Fn(&str) -> Option<OsString>) -> Origin {
    let mut origin = Origin::default();
    for launcher in &LAUNCHERS {
        let job = launcher.job.and_then(&variable);
        let job = job.map(|job| job.to_string_lossy().into_owned());
        let job = job.filter(|job| !job.is_empty() && job != NO_JOB);
        origin.job = origin.job.or(job);
        let Some((rank, ranks, local_rank)) = launcher.read(&variable, &mut origin.notes) else { continue };
        let of = |rank: u32, ranks: Option<u32>| match ranks {
            Some(ranks) => format!("rank {rank} of {ranks}"),
            None => format!("rank {rank}"),
        };
        match (origin.launcher.as_deref(), origin.rank) {
            (Some(inner), Some(known)) if (known, origin.ranks) != (rank, ranks) => {
                let note = format!(
                    "{inner} says {}, {} says {}: {inner}, the inner one, counts",
                    of(known, origin.ranks),
                    launcher.name,
                    of(rank, ranks)
                );
                origin.notes.push(note);
            }
            (Some(_), _) => {}
            (None, _) => {
                origin.launcher = Some(launcher.name.to_owned());
                (origin.rank, origin.ranks, origin.local_rank) = (Some(rank), ranks, local_rank);
            }
        }
    }
    origin
}

/// Returns the ranks of this process, see [`ranks_of`].
pub fn ranks() -> Origin {
    ranks_of(|name| std::env::var_os(name))
}

/// Returns where and when this process starts to record; `None` with a test clock, for reproducible traces.
pub(crate) fn origin_of(device: &dyn Device) -> Option<Origin> {
    let DeviceFacts { clock, ordinal, uuid, .. } = device.facts();
    if !matches!(clock, HostClock::System) {
        return None;
    }
    Some(Origin {
        host: host(),
        process: Some(std::process::id()),
        device: ordinal,
        device_uuid: uuid,
        began: Some(began(&clock)),
        ..ranks()
    })
}

/// Reads both host clocks several times and returns the reading with the smallest error.
fn began(clock: &HostClock) -> Began {
    const READINGS: usize = 4;
    let read = || {
        // `now` reads the monotonic clock first: the real-time reading lies between both monotonic ones.
        let (first, second) = (clock.now(), clock.now());
        let width = second.monotonic.saturating_sub(first.monotonic);
        Began {
            realtime_ns: first.realtime,
            monotonic_ns: first.monotonic + width / 2,
            error_ns: width.div_ceil(2),
        }
    };
    let mut best = read();
    for _ in 1..READINGS {
        let next = read();
        if next.error_ns < best.error_ns {
            best = next;
        }
    }
    best
}

fn host() -> Option<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    Some(name.trim().to_owned()).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SimDevice, SimOptions};

    fn said(pairs: &[(&str, &str)]) -> Origin {
        ranks_of(|name| pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into()))
    }

    fn ranks(origin: &Origin) -> (Option<&str>, [Option<u32>; 3], Option<&str>) {
        let Origin { launcher, rank, ranks, local_rank, job, .. } = origin;
        (launcher.as_deref(), [*rank, *ranks, *local_rank], job.as_deref())
    }

    const SLURM: [(&str, &str); 4] =
        [("SLURM_PROCID", "5"), ("SLURM_NTASKS", "16"), ("SLURM_LOCALID", "1"), ("SLURM_JOB_ID", "77")];
    const TORCHRUN: [(&str, &str); 4] =
        [("RANK", "3"), ("WORLD_SIZE", "8"), ("LOCAL_RANK", "3"), ("TORCHELASTIC_RUN_ID", "run")];

    #[test]
    fn each_launcher_is_understood() {
        assert_eq!(said(&[]), Origin::default());
        let mpi = [("OMPI_COMM_WORLD_RANK", "2"), ("OMPI_COMM_WORLD_SIZE", "4")];
        let all = [Some(3), Some(8), Some(3)];
        for (pairs, expected) in [
            (&TORCHRUN[..], (Some("torchrun"), all, Some("run"))),
            (&SLURM, (Some("Slurm"), [Some(5), Some(16), Some(1)], Some("77"))),
            (&mpi, (Some("Open MPI"), [Some(2), Some(4), None], None)),
            (&[("PMI_RANK", "0"), ("PMI_SIZE", "1")], (Some("PMI"), [Some(0), Some(1), None], None)),
            (&[("RANK", "1")], (Some("torchrun"), [Some(1), None, None], None)),
            (&[("WORLD_SIZE", "9"), ("SLURM_JOB_ID", "77")], (None, [None; 3], Some("77"))),
        ] {
            let found = said(pairs);
            assert_eq!(ranks(&found), expected);
            assert_eq!(found.notes, [""; 0]);
        }
    }

    #[test]
    fn of_several_launchers_the_innermost_counts_and_a_note_tells() {
        let found = said(&[&SLURM[..], &TORCHRUN].concat());
        assert_eq!(ranks(&found), (Some("torchrun"), [Some(3), Some(8), Some(3)], Some("run")));
        let note = "torchrun says rank 3 of 8, Slurm says rank 5 of 16: torchrun, the inner one, counts";
        assert_eq!(found.notes, [note]);
        // Both agree, and torchrun's job has no name.
        let same = [("RANK", "5"), ("WORLD_SIZE", "16"), ("TORCHELASTIC_RUN_ID", "none")];
        let found = said(&[&SLURM[..], &same].concat());
        assert_eq!(ranks(&found), (Some("torchrun"), [Some(5), Some(16), None], Some("77")));
        assert_eq!(found.notes, [""; 0]);
    }

    #[test]
    fn nonsense_is_told_and_ignored() {
        let found = said(&[&SLURM[..], &[("RANK", "gold\u{1b}"), ("WORLD_SIZE", "-1")]].concat());
        assert_eq!(ranks(&found), (Some("Slurm"), [Some(5), Some(16), Some(1)], Some("77")));
        assert_eq!(found.notes, ["RANK is `gold\\u{1b}`, which is no number: it was ignored"]);
        let found = said(&[("RANK", "8"), ("WORLD_SIZE", "8"), ("LOCAL_RANK", "x")]);
        assert_eq!(ranks(&found), (None, [None; 3], None));
        assert_eq!(found.notes.len(), 2);
        assert!(found.notes[1].contains("RANK is 8, but WORLD_SIZE is 8"), "{:?}", found.notes);
        let found = said(&[("PMI_RANK", "4294967296")]);
        assert_eq!((found.rank, found.notes.len()), (None, 1));
    }

    #[test]
    fn a_recording_knows_host_process_and_clocks() {
        let origin = origin_of(&SimDevice::new(SimOptions::default())).unwrap();
        assert_eq!(origin.process, Some(std::process::id()));
        assert_eq!((origin.device, origin.device_uuid), (None, None));
        if cfg!(target_os = "linux") {
            assert!(origin.host.is_some_and(|host| !host.is_empty() && !host.contains('\n')));
        }
        let (began, now) = (origin.began.unwrap(), HostClock::System.now());
        assert!(began.monotonic_ns <= now.monotonic && now.monotonic - began.monotonic_ns < 60_000_000_000);
        assert!(began.realtime_ns.abs_diff(now.realtime) < 60_000_000_000);
        assert!(began.error_ns < 1_000_000_000);
    }
}
